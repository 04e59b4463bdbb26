"""Operands of whole numbers, whose products are exact in any order, in awkward layouts."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from grader import Evidence, Mismatch, assert_close, assert_raises, compared, draw_order
from grader.ch03_matmul.shapes import Shape

EXACT = "sums of whole numbers this small are exact, in whatever order they are taken"


def assert_exact(got: object, expected: torch.Tensor, **inputs: object) -> None:
    """Fail unless `got` is `expected`; show the inputs, tensors by their shapes and strides."""
    rows = tuple((name, shown(value)) for name, value in inputs.items())
    try:
        assert_close(got, expected, rtol=0, atol=0, because=EXACT)
    except Mismatch as mismatch:
        what = mismatch.what.replace("results are too far off", "elements are wrong")
        found = tuple(row for row in mismatch.rows if row[0] != "allowed")
        raise Mismatch(what, (*rows, *_place(got, expected), *found), _link(inputs)) from None


def _place(got: object, expected: torch.Tensor) -> tuple[tuple[str, str], ...]:
    """Return a row with the index of the first element that is wrong, where shapes and dtypes agree."""
    same_kind = isinstance(got, torch.Tensor) and got.shape == expected.shape
    if not same_kind or got.dtype != expected.dtype or not expected.dim():
        return ()
    index = (got != expected).nonzero()[0].tolist()
    return (("element", str(index)),)


def labelled(rng: torch.Generator, *shape: int) -> torch.Tensor:
    """Return float32 numbers that say where they come from: 100 for each row's label, 1 for each column.

    Rows have labels from 1 in an order that is drawn, matrices 10,000 each: 10304 stands in matrix 1, in
    the row with the label 3, in column 4.
    """
    *batch, rows, columns = shape
    label = 1 + torch.tensor(draw_order(rng, rows))
    matrix = torch.arange(math.prod(batch)).reshape(*batch, 1, 1)
    return (10_000 * matrix + 100 * label[:, None] + torch.arange(columns)).float()


def _link(inputs: Mapping[str, object]) -> str:
    if list(inputs) != ["a", "b"]:
        return ""
    a, b = inputs.values()
    assert isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
    return explored(a.shape, b.shape)


def explored(a: Shape, b: Shape) -> str:
    """Return the state of the matmul explorer that multiplies these; empty if it cannot."""
    if max(len(a), len(b)) > 6 or max(*a, *b, 0, 0) > 99_999:
        return ""
    sizes = ("x".join(map(str, size)) for size in (a, b))
    return "matmul.html#a={}&b={}".format(*sizes)


def shown(value: object) -> str:
    """Return a tensor's shape, and its strides unless it is contiguous; else the value as text."""
    if not isinstance(value, torch.Tensor):
        return str(value)
    layout = "" if value.is_contiguous() else f", strides {value.stride()}"
    return f"shape {tuple(value.shape)}{layout}"


def assert_unchanged(evidence: Evidence, **inputs: torch.Tensor | None) -> None:
    """Fail if the student's code changed one of its inputs. The probe lists them as `in_place`."""
    after = evidence.inputs_after
    tensors = {name: value for name, value in inputs.items() if value is not None}
    changed = [name for name, value in tensors.items() if not torch.equal(after[name], value)]
    rows = ((name, shown(value)) for name, value in tensors.items())
    compared(changed)
    if changed:
        names = " and ".join(f"`{name}`" for name in changed)
        what = f"Your code changed {names} in place. Work on a copy, or build a new tensor."
        raise Mismatch(what, tuple(rows))


def assert_refused(evidence: Evidence, **inputs: object) -> None:
    """Fail unless the student's code raised a ValueError, or let an error of PyTorch through."""
    rows = ((name, shown(value)) for name, value in inputs.items())
    what = "This has to raise a ValueError, or to let an error of PyTorch through."
    assert_raises(evidence, ("ValueError", "RuntimeError", "IndexError"), what, *rows)
