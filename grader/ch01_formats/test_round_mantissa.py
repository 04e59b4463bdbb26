"""Checks of `round_mantissa`: TF32 in depth, then every other number of bits, then the ends."""

import pytest
import torch

from grader import about, assert_same_bits, assert_tensor, gate
from grader.ch01_formats.patterns import as_float32, assert_all_nan, awkward

TF32 = 10


@pytest.fixture
def x(rng):
    """float32 of every magnitude: 20,000 random patterns, NaN left out."""
    values = as_float32(torch.randint(0, 2**32, (20_000,), generator=rng))
    return values[~values.isnan()]


def expected(x, kept_bits):
    """Return `x` rounded by arithmetic in float64, where every step here is exact."""
    wide = x.double()
    # frexp's mantissa lies below 1, so that exponent is one more than the power of two of `x`
    power = torch.frexp(wide).exponent.clamp(min=-125) - 1
    step = torch.ldexp(torch.ones_like(wide), power - kept_bits)
    rounded = torch.where(x.isfinite(), torch.round(wide / step) * step, wide)
    return torch.copysign(rounded, wide).float()


LINKS = {
    10: "formats.html#format=tf32&fp32={bits}",
    7: "formats.html#format=bf16&fp32={bits}",
}
"""The explorer rounds to these, to the nearest and to even as asked here."""


def compare(shortened, x, kept_bits):
    got, link = shortened.ask(x, kept_bits).value, LINKS.get(kept_bits, "")
    with about(("call", f"round_mantissa(x, {kept_bits})")):
        assert_same_bits(got, expected(x, kept_bits), of=x, link=link)


def cut(rng, kept_bits, count):
    """Return `count` random patterns of finite magnitudes that end in zeros."""
    tops = torch.randint(0, 255 << kept_bits, (count,), generator=rng)
    return tops << (23 - kept_bits)


@gate
def test_shape_and_dtype(shortened, x):
    """Returns a `float32` tensor of the same shape, and leaves `x` alone."""
    for value in (x, x[:12].reshape(3, 4)):
        assert_tensor(shortened.ask(value, TF32).value, dtype=torch.float32, shape=value.shape)


def test_nearest(shortened, x):
    """TF32: rounds to the nearest number with ten mantissa bits."""
    normal = x[(x.abs() >= 2.0**-126) & (x.abs() < 3.38e38)]
    compare(shortened, normal[(normal.view(torch.int32) & 0x1FFF) != 0x1000], TF32)


def test_ties_go_to_even(shortened, rng):
    """TF32: halfway cases go to the even neighbour; just beside halfway, to the nearest."""
    tops = cut(rng, TF32, 10_000)
    tops = tops[(tops >= 1 << 23) & (tops < 0x7F70_0000)]
    for lower in (0x1000, 0x0FFF, 0x1001):
        for sign in (0, 1 << 31):
            compare(shortened, as_float32(tops | lower | sign), TF32)


def test_every_width(shortened, x, rng):
    """From one kept bit to all 23."""
    normal = x[(x.abs() >= 2.0**-126) & (x.abs() < 1.6e38)][:2000]
    for kept_bits in range(1, 24):
        tops = cut(rng, kept_bits, 600)
        ties = as_float32(tops | (1 << (23 - kept_bits)) >> 1)
        ties = ties[(ties >= 2.0**-126) & (ties < 1.6e38)]
        compare(shortened, torch.cat([normal, ties, -ties]), kept_bits)


def test_small_numbers(shortened, rng):
    """Zeros keep their sign, and subnormals are rounded like all others."""
    subnormal = torch.randint(0, 1 << 23, (4000,), generator=rng)
    edges = torch.tensor([0, 1, 0x0FFF, 0x1000, 0x1001, 0x1FFF, 0x3000, 0x7F_F000, 0x7F_FFFF])
    magnitudes = torch.cat([edges, subnormal, (subnormal & ~0x1FFF) | 0x1000])
    for kept_bits in (TF32, 1, 22):
        compare(shortened, as_float32(torch.cat([magnitudes, magnitudes | 1 << 31])), kept_bits)


def test_large_numbers(shortened, rng):
    """Numbers beyond the largest go to infinity, infinities stay, and every NaN stays a NaN."""
    for kept_bits in (TF32, 1, 7, 22):
        step = 1 << (23 - kept_bits)
        limit = 0x7F80_0000 - step // 2
        magnitudes = torch.tensor([limit - step, limit - 1, limit, 0x7F7F_FFFF, 0x7F80_0000])
        compare(shortened, as_float32(torch.cat([magnitudes, magnitudes | 1 << 31])), kept_bits)
    payload = torch.randint(1, 1 << 23, (2000,), generator=rng)
    edges = torch.tensor([1, 0x0FFF, 0x1000, 0x1FFF, 0x40_0000, 0x7F_F000, 0x7F_FFFF])
    magnitudes = torch.cat([edges, payload]) | 0x7F80_0000
    nan = as_float32(torch.cat([magnitudes, magnitudes | 1 << 31]))
    for kept_bits in (TF32, 1, 23):
        got = shortened.ask(nan, kept_bits).value
        with about(("call", f"round_mantissa(x, {kept_bits})")):
            assert_tensor(got, dtype=torch.float32, shape=nan.shape)
            assert_all_nan(got, of=nan)


def test_any_layout(shortened, x):
    """Transposed, strided, expanded, 0-dim and empty inputs give the same values."""
    for value in awkward(x):
        compare(shortened, value, TF32)
