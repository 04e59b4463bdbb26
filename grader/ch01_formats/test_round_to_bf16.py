"""Checks of `round_to_bf16`: every upper half with the lower halves that decide."""

import pytest
import torch

from grader import Mismatch, about, assert_holds, assert_same_bits, assert_tensor, facts, gate
from grader.ch01_formats.patterns import as_float32, assert_all_nan, awkward, every_upper_half

LINK = "formats.html#format=bf16&fp32={bits}"


@pytest.fixture
def x(rng):
    """float32 of every magnitude: 20,000 random patterns, NaN left out."""
    values = as_float32(torch.randint(0, 2**32, (20_000,), generator=rng))
    return values[~values.isnan()]


def compare(rounded, x):
    got = rounded.ask(x).value
    assert_same_bits(got, x.to(torch.bfloat16), of=x, link=LINK)
    return got


@gate
def test_shape_and_dtype(rounded, x):
    """Returns a `bfloat16` tensor of the same shape, and leaves `x` alone."""
    for value in (x, x[:12].reshape(3, 4)):
        assert_tensor(rounded.ask(value).value, dtype=torch.bfloat16, shape=value.shape)


def test_nearest(rounded, x):
    """Rounds to the nearest neighbour."""
    normal = x[(x.abs() >= 2.0**-126) & (x.abs() < 3.38e38)]
    compare(rounded, normal[(normal.view(torch.int32) & 0xFFFF) != 0x8000])


def test_ties_go_to_even(rounded):
    """Halfway cases go to the even neighbour; just beside halfway, to the nearest."""
    ties = every_upper_half(0x8000)
    beside = torch.cat([every_upper_half(0x7FFF), every_upper_half(0x8001)])
    for x in (ties, beside):
        compare(rounded, x[x.isfinite() & (x.abs() >= 2.0**-126) & (x.abs() < 3.38e38)])


def test_small_numbers(rounded):
    """Zeros keep their sign, and subnormals are rounded like all others."""
    for lower in (0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
        x = every_upper_half(lower)
        compare(rounded, x[x.abs() < 2.0**-126])


def test_large_numbers(rounded):
    """Infinities stay, and what lies half a step beyond the largest number becomes infinite."""
    top = torch.cat([torch.arange(0x7F7F_0000, 0x7F7F_FFFF, 37), torch.tensor([0x7F7F_FFFF])])
    near = torch.tensor([0x7F7F_7FFF, 0x7F7F_8000, 0x7F7F_8001, 0x7F80_0000])
    positive = torch.cat([top, near])
    compare(rounded, as_float32(torch.cat([positive, positive | 0x8000_0000])))


def test_nan_stays_nan(rounded, rng):
    """Every NaN stays a NaN, wherever its bits are."""
    payload = torch.randint(1, 2**23, (4000,), generator=rng)
    edges = torch.tensor([1, 0x7FFF, 0x8000, 0xFFFF, 0x7F_FFFF, 0x40_0000, 0x7F_8000])
    patterns = torch.cat([payload, edges]) | 0x7F80_0000
    x = as_float32(torch.cat([patterns, patterns | 0x8000_0000, torch.tensor([0x3F80_0000])]))
    got = rounded.ask(x).value
    assert_tensor(got, dtype=torch.bfloat16, shape=x.shape)
    if bool(got[-1].isnan()):
        raise Mismatch("1.0 became NaN.")
    assert_all_nan(got[:-1], of=x[:-1])


def test_any_layout(rounded, x):
    """Any layout, 0-dim and empty too, gives the same values, in memory of its own."""
    exact = as_float32(torch.arange(12, 52, 2) << 21)  # the lower halves are zero
    for value in (*awkward(x), exact, exact[:1], *awkward(exact)):
        got = compare(rounded, value)
        shown = value.tolist() if value.numel() <= 1 else f"shape {tuple(value.shape)}"
        with about(("x", f"{shown}, strides {value.stride()}")):
            own = facts(got).aliases is None
            assert_holds(own, "The result is no new tensor: it lies in the memory of `x`.")
