"""Checks of `spacing`: every exponent field, both sides of each power of two, and the ends."""

import pytest
import torch

from grader import assert_same_bits, assert_tensor, gate
from grader.ch01_formats.patterns import as_float32, assert_all_nan, awkward

TINY_STEPS = 24 << 23  # from this pattern, 2 ** -103, on the spacing is a normal number
LARGEST = 0x7F7F_FFFF


@pytest.fixture
def x(rng):
    """Positive float32 whose spacing is a normal number: 20,000 random patterns."""
    return as_float32(torch.randint(TINY_STEPS, LARGEST, (20_000,), generator=rng))


def expected(x):
    """Return the spacing as torch has it, which knows no number after the largest."""
    magnitude = x.abs()
    step = torch.nextafter(magnitude, torch.tensor(torch.inf)) - magnitude
    step[magnitude == as_float32(torch.tensor(LARGEST))] = 2.0**104
    step[magnitude.isinf()] = torch.inf
    return step


def compare(spaced, x):
    link = "formats.html#format=fp32&bits={bits}"
    assert_same_bits(spaced.ask(x).value, expected(x), of=x, link=link)


@gate
def test_shape_and_dtype(spaced, x):
    """Returns a `float32` tensor of the same shape, and leaves `x` alone."""
    for value in (x, x[:12].reshape(3, 4)):
        assert_tensor(spaced.ask(value).value, dtype=torch.float32, shape=value.shape)


def test_normal_numbers(spaced, x):
    """Numbers of every magnitude, from 2⁻¹⁰³ on."""
    compare(spaced, x[(x.view(torch.int32) & 0x7F_FFFF).abs() > 1000])


def test_powers_of_two(spaced):
    """At each power of two, and just before and after it, the step to the larger neighbour."""
    powers = torch.arange(25, 255) << 23
    compare(spaced, as_float32(torch.cat([powers, powers - 1, powers + 1])))


def test_small_steps(spaced):
    """Small normal numbers, whose spacing is a subnormal number."""
    powers = torch.arange(1, 24) << 23
    inside = powers[:, None] + torch.arange(0, 1 << 23, 0x3_1357)
    compare(spaced, as_float32(torch.cat([inside.reshape(-1), powers + 0x7F_FFFF])))


def test_zero_and_subnormals(spaced, rng):
    """Zero and subnormal numbers."""
    subnormal = torch.randint(1, 1 << 23, (4000,), generator=rng)
    edges = torch.tensor([0, 1, 2, 3, 0x40_0000, 0x7F_FFFF])
    compare(spaced, as_float32(torch.cat([edges, subnormal])))


def test_the_far_end(spaced):
    """The largest numbers, infinity and NaN."""
    compare(spaced, as_float32(LARGEST - torch.arange(5)))
    compare(spaced, torch.tensor([torch.inf, -torch.inf]))
    nan = torch.tensor([torch.nan, -torch.nan])
    got = spaced.ask(nan).value
    assert_tensor(got, dtype=torch.float32, shape=nan.shape)
    assert_all_nan(got, of=nan)


def test_negative_numbers(spaced, x):
    """A negative number has the spacing of its magnitude; so has minus zero."""
    magnitudes = torch.cat([torch.zeros(1), as_float32(torch.arange(1, 255) << 23), x[:2000]])
    compare(spaced, -magnitudes)


def test_any_layout(spaced, x):
    """Transposed, strided, expanded, 0-dim and empty inputs give the same values."""
    for value in awkward(x):
        compare(spaced, value)
