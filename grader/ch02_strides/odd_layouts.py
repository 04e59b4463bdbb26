"""Tensors whose layouts assume nothing, as code to paste; comparisons of views with PyTorch's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from grader import Mismatch, about, assert_tensor, compared, facts, layout_of, whole_numbers


def whole(rng: torch.Generator, *size: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    """Return random whole numbers of that size, contiguous."""
    return whole_numbers(rng, size, -(2**31), 2**31 - 1, dtype=dtype)


def storage_as_bytes(x: torch.Tensor) -> bytes:
    """Return the content of a tensor's storage."""
    return bytes(x.untyped_storage().tolist())


def from_the_start(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the same layouts with offset 0: to count it in is a check of its own."""
    return {name: x.as_strided(x.shape, x.stride(), 0) for name, x in tensors.items()}


def code(x: torch.Tensor) -> str:
    """Return a tensor of that dtype and layout as code to paste; its numbers are other ones."""
    cells = x.untyped_storage().nbytes() // x.element_size()
    return f"torch.arange({cells}){_cast(x.dtype)}{_strided(x)}"


def codes(tensors: Mapping[str, torch.Tensor]) -> list[tuple[str, str]]:
    """Return rows of code that make tensors of these layouts, which share memory as they do."""
    homes: dict[int, str] = {}
    rows = []
    for name, x in tensors.items():
        storage = x.untyped_storage()
        home = storage._cdata
        if home not in homes:
            homes[home] = f"bytes{len(homes)}"
            rows.append((homes[home], f"torch.arange({storage.nbytes()}).to(torch.uint8)"))
        rows.append((name, f"{homes[home]}.view({x.dtype}){_strided(x)}"))
    return rows


def _cast(dtype: torch.dtype) -> str:
    return "" if dtype is torch.int64 else f".to({dtype})"


def _strided(x: torch.Tensor) -> str:
    return f".as_strided({tuple(x.shape)}, {x.stride()}, {x.storage_offset()})"


def assert_each(got: list[Any], expected: list[Any], cases: list[dict[str, Any]]) -> None:
    """Fail unless `got` has what is expected for each case; show the simplest that differs.

    A case has rows that show it: a call, or names and what they stand for. The shortest counts as the
    simplest.
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
            ("expected", repr(expected[first])),
            ("got", repr(got[first])[:200]),
        ),
    )


def _differ(one: Any, other: Any) -> bool:
    """A list is as good as a tuple; a tensor is no number."""
    if isinstance(other, tuple):
        alike = isinstance(one, list | tuple) and len(one) == len(other)
        return not alike or any(map(_differ, one, other))
    return isinstance(one, torch.Tensor) or bool(one != other)


def assert_same_view(got: object, expected: torch.Tensor, call: str, x: torch.Tensor) -> None:
    """Fail unless `got` is a view of `x` with the layout of `expected`; show the call and `x`.

    Strides of dimensions of size 1, and all of an empty tensor's, are free.
    """
    asked: Sequence[tuple[str, str]] = (("call", call), ("x", code(x)))
    with about(*asked):
        assert_tensor(got, dtype=expected.dtype, shape=expected.shape)
    assert isinstance(got, torch.Tensor)
    if not got.numel():
        return
    found = {"alias": facts(got).aliases is not None, **_layout(got)}
    compared([got, *found.items()])
    rows = (*asked, ("expected", _told(expected)), ("got", _told(got)))
    # drawn on one strip of cells where they lie in one storage
    drawn = (("expected", layout_of(expected, 0)), ("got", layout_of(got, 1 - found["alias"])))
    if not torch.equal(got, expected):
        raise Mismatch("Elements are not where they belong.", rows, layouts=drawn)
    if not found["alias"]:
        raise Mismatch("The values are right, and the result is a copy.", tuple(asked))
    if _layout(got) != _layout(expected):
        raise Mismatch("The layout is not the one of the view.", rows, layouts=drawn)


def _layout(x: torch.Tensor) -> dict[str, object]:
    strides = zip(x.stride(), x.shape, strict=True)
    return {
        "stride": tuple(0 if n == 1 else s for s, n in strides),
        "offset": x.storage_offset(),
    }


def _told(x: torch.Tensor) -> str:
    return ", ".join(f"{name} {value}" for name, value in _layout(x).items())
