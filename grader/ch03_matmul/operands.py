"""Operands of whole numbers, whose products are exact in any order, in awkward layouts."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from grader import Evidence, Mismatch, assert_close, assert_raises
from grader.ch03_matmul.shapes import Shape

EXACT = "sums of whole numbers this small are exact, in whatever order they are taken"


def assert_exact(got: object, expected: torch.Tensor, **inputs: object) -> None:
    """Fail unless `got` is `expected`; show the inputs, tensors by their shapes and strides."""
    rows = tuple((name, shown(value)) for name, value in inputs.items())
    try:
        assert_close(got, expected, rtol=0, atol=0, because=EXACT)
    except Mismatch as mismatch:
        raise Mismatch(mismatch.what, (*rows, *mismatch.rows), _link(inputs)) from None


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


def assert_refused(evidence: Evidence, **inputs: object) -> None:
    """Fail unless the student's code raised a ValueError, or let an error of PyTorch through."""
    rows = ((name, shown(value)) for name, value in inputs.items())
    what = "This has to raise a ValueError, or to let an error of PyTorch through."
    assert_raises(evidence, ("ValueError", "RuntimeError", "IndexError"), what, *rows)
