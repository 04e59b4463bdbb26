"""Tensors whose layouts assume nothing, and the comparison of a view with PyTorch's own."""

from __future__ import annotations

from typing import Any

import torch

from grader import Mismatch, assert_tensor, compared, facts, layout_of, whole_numbers


def whole(rng: torch.Generator, *size: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    """Return random whole numbers of that size, contiguous."""
    return whole_numbers(rng, size, -(2**31), 2**31 - 1, dtype=dtype)


def storage_as_bytes(x: torch.Tensor) -> bytes:
    """Return the content of a tensor's storage."""
    return bytes(x.untyped_storage().tolist())


def assert_each(got: list[Any], expected: list[Any], cases: list[dict[str, Any]]) -> None:
    """Fail unless `got` has what is expected for each case; show the simplest that differs.

    A case says under which name the function was given what; the shortest counts as the simplest.
    """
    compared(got, expected)
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
