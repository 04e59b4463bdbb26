"""Rounding and reading bits: the reference solutions agree with torch on millions of patterns."""

import math
from fractions import Fraction
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.evidence.wire.tensors import DTYPES
from tests import references

reference = partial(references.reference, "ch01_formats")
SEEDS = st.integers(0, 2**32 - 1)
COUNT = 100_000
few = settings(max_examples=20, derandomize=True, database=None)


def floats(seed):
    """Return random float32 patterns, NaN and all, and every power of two's surroundings."""
    generator = torch.Generator().manual_seed(seed)
    random = torch.randint(-(2**31), 2**31, (COUNT,), generator=generator)
    powers = torch.arange(256) << 23
    near = torch.randint(-70_000, 70_000, (256,), generator=generator)
    patterns = torch.cat([random, powers, (powers + near).clamp(0, 2**31 - 1)])
    return patterns.to(torch.int32).view(torch.float32)


def same(got, expected):
    """Say whether two float tensors have the same bits, one NaN being as good as another."""
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[expected.dtype.itemsize]
    nan = expected.float().isnan()
    return (
        got.dtype == expected.dtype
        and bool(got.float()[nan].isnan().all())
        and torch.equal(got.view(whole)[~nan], expected.view(whole)[~nan])
    )


@pytest.mark.parametrize(
    ("dtype", "exponent_bits", "mantissa_bits"),
    [
        (torch.float16, 5, 10),
        (torch.bfloat16, 8, 7),
        (torch.float8_e5m2, 5, 2),
    ],
)
def test_decode_every_pattern(dtype, exponent_bits, mantissa_bits):
    decode = reference("decode")
    whole = {1: torch.uint8, 2: torch.int16}[dtype.itemsize]
    patterns = torch.arange(2 ** (8 * dtype.itemsize))
    expected = patterns.to(whole).view(dtype).double().tolist()
    for pattern, value in zip(patterns.tolist(), expected, strict=True):
        got = decode(pattern, exponent_bits, mantissa_bits)
        assert math.isnan(got) if math.isnan(value) else got == value
        assert math.isnan(value) or math.copysign(1, got) == math.copysign(1, value)


@few
@given(st.integers(2, 8), st.integers(1, 23), st.data())
def test_decode_any_width_by_fractions(exponent_bits, mantissa_bits, data):
    decode = reference("decode")
    width = 1 + exponent_bits + mantissa_bits
    for pattern in data.draw(st.lists(st.integers(0, 2**width - 1), min_size=50, max_size=50)):
        sign, rest = divmod(pattern, 2 ** (width - 1))
        exponent, mantissa = divmod(rest, 2**mantissa_bits)
        if exponent == 2**exponent_bits - 1:
            continue
        bias = 2 ** (exponent_bits - 1) - 1
        lead = Fraction(mantissa, 2**mantissa_bits) + (exponent > 0)
        exact = (-1) ** sign * lead * Fraction(2) ** (max(exponent, 1) - bias)
        assert Fraction(decode(pattern, exponent_bits, mantissa_bits)) == exact


@pytest.mark.parametrize(
    ("dtype", "widths"),
    [
        (torch.float64, (11, 52)),
        (torch.float32, (8, 23)),
        (torch.float16, (5, 10)),
        (torch.bfloat16, (8, 7)),
        (torch.float8_e5m2, (5, 2)),
    ],
)
def test_limits_are_finfo(dtype, widths):
    info = torch.finfo(dtype)
    assert reference("format_limits")(*widths) == {
        "max": info.max,
        "smallest_normal": info.smallest_normal,
        "smallest_subnormal": info.smallest_normal * info.eps,
        "eps": info.eps,
    }


@few
@given(st.integers(2, 8), st.integers(1, 23))
def test_limits_are_what_decode_reads(exponent_bits, mantissa_bits):
    decode = reference("decode")
    limits = reference("format_limits")(exponent_bits, mantissa_bits)
    infinity = (2**exponent_bits - 1) << mantissa_bits
    one = (2 ** (exponent_bits - 1) - 1) << mantissa_bits
    widths = exponent_bits, mantissa_bits
    assert limits["max"] == decode(infinity - 1, *widths)
    assert limits["smallest_normal"] == decode(1 << mantissa_bits, *widths)
    assert limits["smallest_subnormal"] == decode(1, *widths)
    assert limits["eps"] == decode(one + 1, *widths) - 1


@few
@given(SEEDS)
def test_spacing_is_nextafter(seed):
    x = floats(seed)
    x = x[x.abs() < torch.finfo(torch.float32).max]
    beyond = torch.nextafter(x.abs(), torch.tensor(torch.inf))
    assert same(reference("spacing")(x), beyond - x.abs())


@few
@given(SEEDS)
def test_rounding_to_bf16_is_torchs(seed):
    x = floats(seed)
    assert same(reference("round_to_bf16")(x), x.to(torch.bfloat16))


@few
@given(SEEDS)
def test_seven_bits_of_mantissa_are_bf16(seed):
    x = floats(seed)
    assert same(reference("round_mantissa")(x, 7), x.to(torch.bfloat16).float())


@few
@given(SEEDS)
def test_ten_bits_of_mantissa_are_half_where_half_reaches(seed):
    x = floats(seed)
    x = x[(x.abs() >= 2.0**-14) & (x.abs() < 65504)]
    assert same(reference("round_mantissa")(x, 10), x.half().float())


@few
@given(SEEDS, st.integers(1, 23))
def test_any_mantissa_is_nearest_and_even(seed, kept_bits):
    x = floats(seed)[:2000]
    x = x[x.isfinite()]
    got = reference("round_mantissa")(x, kept_bits)
    step = 1 << (23 - kept_bits)
    for bits, rounded in zip(
        x.view(torch.int32).tolist(), got.view(torch.int32).tolist(), strict=True
    ):
        magnitude, result = bits & 0x7FFFFFFF, rounded & 0x7FFFFFFF
        assert (bits < 0) == (rounded < 0)
        assert result == round(Fraction(magnitude, step)) * step  # Python rounds ties to even


@few
@given(SEEDS, st.sampled_from(["float8_e4m3fn", "float8_e5m2"]))
def test_fp8_is_torchs(seed, name):
    dtype = DTYPES[name]
    x = torch.cat(
        [floats(seed), torch.randn(COUNT, generator=torch.Generator().manual_seed(seed)) * 9]
    )
    # torch 2.13 saturates e4m3fn and lets e5m2 overflow; infinities of e4m3fn are the exercise's own
    saturate = dtype is torch.float8_e4m3fn
    x = x[~x.isinf()] if saturate else x
    got = reference("encode_fp8")(x, dtype, saturate)
    assert same(got.view(dtype), x.to(dtype))


@few
@given(SEEDS)
def test_stochastic_rounding_is_one_of_two_neighbours_and_exact_on_average(seed):
    x = floats(seed)[:4]
    x = torch.where(x.isfinite(), x, 1.001)
    noise = torch.arange(65_536, dtype=torch.int32)
    for value in x:
        got = reference("stochastic_round")(value.expand(65_536), noise)
        patterns = got.view(torch.int16).to(torch.int32)
        lower = value.view(torch.int32) >> 16
        ups = int((patterns != lower.to(torch.int16).to(torch.int32)).sum())
        assert ups == int(value.view(torch.int32)) & 0xFFFF
        assert bool(((patterns & 0xFFFF) - (lower & 0xFFFF)).le(1).all())
