"""Checks of `encode_fp8`: every target, every midpoint with its neighbours, and both modes."""

import pytest
import torch

from grader import about, assert_same_bits, assert_tensor, gate
from grader.ch01_formats.patterns import as_float32, assert_all_nan, awkward

LARGEST = {torch.float8_e4m3fn: 0x7E, torch.float8_e5m2: 0x7B}
NORMAL = {torch.float8_e4m3fn: 0x08, torch.float8_e5m2: 0x04}  # the first pattern of a normal
LIMIT = {torch.float8_e4m3fn: 464.0, torch.float8_e5m2: 61440.0}  # the largest plus half a step
MODES = [(dtype, saturate) for dtype in LARGEST for saturate in (True, False)]
MIXED = MODES[::3]  # both formats and both modes, where their combinations cannot matter


def numbers(dtype):
    """Return all finite numbers that are not negative, by pattern, as float32."""
    return torch.arange(LARGEST[dtype] + 1, dtype=torch.uint8).view(dtype).float()


def midpoints(dtype):
    """Return what lies halfway between neighbours, exactly: the last is between normals."""
    values = numbers(dtype)
    return (values[:-1] + values[1:]) / 2


def beside(x):
    """Return the float32 just below and just above each of `x`, positive numbers."""
    bits = x.view(torch.int32)
    return torch.cat([(bits - 1).view(torch.float32), (bits + 1).view(torch.float32)])


def both_signs(x):
    return torch.cat([x, -x])


def expected(x, dtype, saturate):
    """Return the patterns: torch's own up to the limit, the exercise's rule beyond."""
    # At the limit itself the tie goes to the even pattern, and 0x7B is odd.
    beyond = (x.abs() > LIMIT[dtype]) | ((x.abs() == LIMIT[dtype]) & (LARGEST[dtype] % 2 == 1))
    inside = x.masked_fill(beyond, 0.0).to(dtype).view(torch.uint8)
    outside = (x.signbit().to(torch.uint8) << 7) | (LARGEST[dtype] + (not saturate))
    return torch.where(beyond, outside, inside)


LINKS = {
    (torch.float8_e4m3fn, True): "formats.html#format=e4m3fn&fp32={bits}",
    (torch.float8_e4m3fn, False): "formats.html#format=e4m3fn&fp32={bits}&saturate=0",
    (torch.float8_e5m2, False): "formats.html#format=e5m2&fp32={bits}",
}
"""What the explorer shows of an input: it does not saturate E5M2."""


def compare(encoded, x, dtype, saturate):
    got = encoded.ask(x, dtype, saturate).value
    assert_tensor(got, dtype=torch.uint8, shape=x.shape)
    wanted = expected(x, dtype, saturate).view(dtype)
    got = got.view(dtype)
    # any NaN will do where one is due
    got = torch.where(wanted.isnan() & got.isnan(), wanted.view(torch.uint8), got.view(torch.uint8))
    with about(("call", f"encode_fp8(x, {dtype}, {saturate})")):
        assert_same_bits(got.view(dtype), wanted, of=x, link=LINKS.get((dtype, saturate), ""))


@pytest.fixture
def x(rng):
    """float32 with exponents around those of both formats, 8,000 random patterns."""
    patterns = torch.randint(100 << 23, 150 << 23, (4000,), generator=rng)
    return as_float32(torch.cat([patterns, patterns | 1 << 31]))


@gate
def test_shape_and_dtype(encoded, x):
    """Returns a `uint8` tensor of the same shape, and leaves `x` alone."""
    matrix = x[:12].reshape(3, 4)
    for dtype, saturate in MIXED:
        got = encoded.ask(matrix, dtype, saturate).value
        assert_tensor(got, dtype=torch.uint8, shape=matrix.shape)


def test_own_numbers(encoded):
    """Each number that the format has keeps its pattern."""
    for dtype, saturate in MODES:
        compare(encoded, both_signs(numbers(dtype)), dtype, saturate)


def test_nearest(encoded, x):
    """Normal numbers go to the nearest, in any layout."""
    for dtype, saturate in MODES:
        values = numbers(dtype)[NORMAL[dtype] :]
        inside = x[(x.abs() >= values[0]) & (x.abs() <= values[-1])]
        close = both_signs(beside(midpoints(dtype)[NORMAL[dtype] :]))
        compare(encoded, torch.cat([close, inside]), dtype, saturate)
    for dtype, saturate in MIXED:
        for value in awkward(x[(x.abs() >= 2.0**-6) & (x.abs() <= 300.0)]):
            compare(encoded, value, dtype, saturate)


def test_ties_go_to_even(encoded):
    """Halfway between two normal numbers, the even pattern wins."""
    for dtype, saturate in MODES:
        compare(encoded, both_signs(midpoints(dtype)[NORMAL[dtype] :]), dtype, saturate)


def test_small_numbers(encoded, rng):
    """Subnormal numbers follow the same rule, down to zero and its sign."""
    for dtype, saturate in MODES:
        halves = midpoints(dtype)[: NORMAL[dtype]]
        steps = 2 * halves[0] * torch.rand(2000, generator=rng) * NORMAL[dtype]
        tiny = as_float32(torch.randint(0, 60 << 23, (500,), generator=rng))
        ends = as_float32(torch.tensor([0, 1, 0x7F_FFFF, 0x80_0000]))
        x = torch.cat([halves, beside(halves), ends, steps, tiny])
        compare(encoded, both_signs(x), dtype, saturate)


def too_large(dtype, rng):
    """Return numbers from the largest on: around the limit, far beyond, and infinity."""
    limit = torch.tensor([LIMIT[dtype]])
    first = int(limit.view(torch.int32))
    beyond = as_float32(torch.randint(first + 1, 0x7F80_0000, (2000,), generator=rng))
    ends = as_float32(torch.tensor([0x7F7F_FFFF, 0x7F80_0000]))
    below = numbers(dtype)[-1] + torch.tensor([0.0, 0.25, 1.0, 8.0])
    return both_signs(torch.cat([below, limit, beside(limit), 2 * limit, beyond, ends]))


def test_saturates(encoded, rng):
    """With `saturate=True`, what is too large becomes the largest number."""
    for dtype in LARGEST:
        compare(encoded, too_large(dtype, rng), dtype, True)


def test_overflows(encoded, rng):
    """With `saturate=False`, it becomes infinity or, in `float8_e4m3fn`, NaN."""
    for dtype in LARGEST:
        compare(encoded, too_large(dtype, rng), dtype, False)


def test_nan_stays_nan(encoded, rng):
    """Every NaN becomes a NaN, in both modes."""
    payload = torch.randint(1, 1 << 23, (2000,), generator=rng)
    edges = torch.tensor([1, 0x0F_FFFF, 0x10_0000, 0x40_0000, 0x7F_FFFF])
    patterns = torch.cat([edges, payload]) | 0x7F80_0000
    x = as_float32(torch.cat([patterns, patterns | 1 << 31]))
    for dtype, saturate in MODES:
        got = encoded.ask(x, dtype, saturate).value
        assert_tensor(got, dtype=torch.uint8, shape=x.shape)
        with about(("call", f"encode_fp8(x, {dtype}, {saturate})")):
            assert_all_nan(got.view(dtype).float(), of=x)
