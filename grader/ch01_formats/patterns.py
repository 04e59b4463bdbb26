"""Bit patterns that checks of chapter 1 share: whole formats, boundaries, ties, odd layouts."""

from __future__ import annotations

import torch

from grader import Mismatch, compared


def as_float32(patterns: torch.Tensor) -> torch.Tensor:
    """Return int64 patterns 0 … 2**32 - 1 as the float32 they stand for, the same shape."""
    signed = torch.where(patterns >= 2**31, patterns - 2**32, patterns)
    return signed.to(torch.int32).view(torch.float32)


def every_upper_half(lower: int) -> torch.Tensor:
    """Return all 65,536 upper halves with one lower half, as float32, NaN left out."""
    values = as_float32((torch.arange(65_536) << 16) | lower)
    return values[~values.isnan()]


def awkward(x: torch.Tensor) -> list[torch.Tensor]:
    """Return float32 values of `x` (n,), n >= 12, in layouts that assume nothing.

    Transposed, strided with an offset, expanded, 0-dim and empty.
    """
    matrix = x[:12].reshape(3, 4).clone()
    return [
        matrix.t(),
        x[:12].clone()[1::3],
        x[:1].clone().expand(2, 3),
        x[5].clone(),
        x[:0].clone().reshape(0, 4),
    ]


def assert_all_nan(got: torch.Tensor, *, of: torch.Tensor) -> None:
    """Fail unless every element of `got` is a NaN. `of` holds the float32 input of each."""
    found = got.isnan()
    compared(found, torch.ones_like(found))
    if bool(found.all()):
        return
    where = int((~found).reshape(-1).nonzero()[0])
    bits = int(of.reshape(-1).view(torch.int32)[where]) & 0xFFFF_FFFF
    raise Mismatch(
        f"{int((~found).sum())} of {found.numel()} NaN did not stay NaN. The first:",
        (("input", f"0x{bits:08X}"), ("got", f"{float(got.reshape(-1)[where])}")),
    )
