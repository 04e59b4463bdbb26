"""Tensors whose layouts assume nothing, and the comparison of a view with PyTorch's own."""

from __future__ import annotations

from typing import Any

import torch

from grader import Mismatch, assert_tensor, compared, facts, layout_of


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


def odd_tensors(rng: torch.Generator) -> dict[str, torch.Tensor]:
    """Return int32 tensors of three dimensions, each in a layout of its own."""
    base = whole(rng, 4, 5, 6)
    return {
        "contiguous": base,
        "with an offset and gaps": base[1:, 1:4, ::2],
        "permuted": base.permute(2, 0, 1)[1:],
        "expanded": base[1:2, :, 2:].expand(3, 5, 4),
        "of odd strides": base.reshape(-1).as_strided((3, 4, 2), (7, 2, 9), 5),
        "with a size of 1": base[2:, 3:4, 1:],
        "empty": base[:, :, 2:2],
    }


def assert_same_view(got: object, expected: torch.Tensor, what: str) -> None:
    """Fail unless `got` is a view of its input with the layout of `expected`.

    Strides of dimensions of size 1, and all of an empty tensor's, are free.
    """
    assert_tensor(got, dtype=expected.dtype, shape=expected.shape)
    assert isinstance(got, torch.Tensor)
    if not got.numel():
        return
    found = {"alias": facts(got).aliases is not None, **_layout(got)}
    compared([got, *found.items()])
    rows = (("on", what), ("expected", str(_layout(expected))), ("got", str(_layout(got))))
    # drawn on one strip of cells where they lie in one storage
    drawn = (("expected", layout_of(expected, 0)), ("got", layout_of(got, 1 - found["alias"])))
    if not torch.equal(got, expected):
        raise Mismatch("Elements are not where they belong.", rows, layouts=drawn)
    if not found["alias"]:
        raise Mismatch("The values are right, and the result is a copy.", rows[:1])
    if _layout(got) != _layout(expected):
        raise Mismatch("The layout is not the one of the view.", rows, layouts=drawn)


def _layout(x: torch.Tensor) -> dict[str, object]:
    strides = zip(x.stride(), x.shape, strict=True)
    return {
        "stride": tuple(0 if n == 1 else s for s, n in strides),
        "offset": x.storage_offset(),
    }
