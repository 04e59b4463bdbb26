"""Operands of every dtype and level, as code to paste, and the dtype that PyTorch gives to them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import reduce

import torch

DTYPES = (
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
)

NUMBERS = (True, 3, 2.5, 2j)

Operand = torch.Tensor | complex


def with_dimensions(size: Sequence[int] = (2,)) -> list[Operand]:
    """Return a tensor of that size for each dtype."""
    return [torch.zeros(*size, dtype=dtype) for dtype in DTYPES]


def without_dimensions() -> list[Operand]:
    """Return a 0-dim tensor for each dtype."""
    return [torch.zeros((), dtype=dtype) for dtype in DTYPES]


def code(operand: Operand) -> str:
    """Return an operand as code to paste."""
    if isinstance(operand, torch.Tensor):
        return f"torch.zeros({tuple(operand.shape)}, dtype={operand.dtype})"
    return repr(operand)


def promoted(operands: Sequence[Operand]) -> torch.dtype:
    """Return the dtype of an elementwise result, as PyTorch says of two operands at a time.

    Two of one level combine as equals. The dtype that a lower level leaves stands for it as a
    tensor without dimensions, so that the next higher one can be combined with it.
    """
    tensors = [x for x in operands if isinstance(x, torch.Tensor)]
    dtypes = [_equals(x for x in tensors if x.dim()), _equals(x for x in tensors if not x.dim())]
    numbers = [x for x in operands if not isinstance(x, torch.Tensor)]
    # of numbers the one of the highest category decides; a complex one knows no order
    number = max(numbers, key=_category) if numbers else None
    high, middle = (
        None if d is None else torch.zeros(k, dtype=d)
        for d, k in zip(dtypes, ((1,), ()), strict=True)
    )
    low: Operand | None = middle
    if number is not None:
        dtype = torch.result_type(number if middle is None else middle, number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # complex32 is new, and says so
            low = torch.zeros((), dtype=dtype)
    if high is None:
        assert isinstance(low, torch.Tensor)
        return low.dtype
    return high.dtype if low is None else torch.result_type(high, low)


def _category(number: complex) -> int:
    return [bool, int, float, complex].index(type(number))


def _equals(tensors: Iterable[torch.Tensor]) -> torch.dtype | None:
    dtypes = [x.dtype for x in tensors]
    return reduce(torch.promote_types, dtypes) if dtypes else None
