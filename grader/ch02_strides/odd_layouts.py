"""Tensors whose layouts assume nothing, and the comparison of a view with PyTorch's own."""

from __future__ import annotations

from typing import Any

import torch

from grader import Mismatch, assert_same_bits, assert_tensor, compared, facts


def whole(rng: torch.Generator, *size: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    """Return random whole numbers of that size, contiguous."""
    return torch.randint(-(2**31), 2**31, size, generator=rng).to(dtype)


def random_int(rng: torch.Generator, low: int, high: int) -> int:
    """Return a whole number from `low` up to `high`, both included."""
    return int(torch.randint(low, high + 1, (), generator=rng))


def storage_as_bytes(x: torch.Tensor) -> bytes:
    """Return the content of a tensor's storage."""
    return bytes(x.untyped_storage().tolist())


def assert_each(got: list[Any], expected: list[Any], cases: list[dict[str, Any]]) -> None:
    """Fail unless `got` has what is expected for each case; show the simplest that differs.

    A case says under which name the function was given what; the shortest counts as the simplest.
    """
    compared(got)
    wrong = [number for number in range(len(expected)) if _differ(got[number], expected[number])]
    if not wrong:
        return
    first = min(wrong, key=lambda number: len(str(cases[number])))
    raise Mismatch(
        f"{len(wrong)} of {len(expected)} answers differ. The simplest:",
        (
            *((name, str(value)) for name, value in cases[first].items()),
            ("expected", str(expected[first])),
            ("got", str(got[first])[:200]),
        ),
    )


def _differ(one: Any, other: Any) -> bool:
    """A list is as good as a tuple; a tensor is no number."""
    if isinstance(other, tuple):
        alike = isinstance(one, list | tuple) and len(one) == len(other)
        return not alike or any(map(_differ, one, other))
    return isinstance(one, torch.Tensor) or bool(one != other)


def random_layout(
    rng: torch.Generator, dims: int, *, ones: bool = True, zeros: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return sizes and strides of a tensor as slicing, permuting and expanding leave them.

    ones, zeros: whether sizes of 1 (with any stride) and of 0 may occur
    """
    low = 0 if zeros else 1 if ones else 2
    size = [random_int(rng, low, 4) for _ in range(dims)]
    order = torch.randperm(dims, generator=rng).tolist()
    if random_int(rng, 0, 1):
        order = list(range(dims))
    stride, step = [0] * dims, random_int(rng, 1, 2)
    for dim in reversed(order):
        stride[dim] = step
        step *= max(size[dim], 1) + (random_int(rng, 0, 3) == 3)
    for dim in range(dims):
        if size[dim] == 1 or random_int(rng, 0, 9) == 0:
            stride[dim] = random_int(rng, 0, 13) if size[dim] == 1 else 0
    return tuple(size), tuple(stride)
