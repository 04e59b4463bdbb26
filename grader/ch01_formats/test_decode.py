"""Checks of `decode`: every half pattern, and the same rules at other widths."""

import pytest
import torch

from grader import NOTHING, Mismatch, bits, compared, gate

HALF = 5, 10


def in_torch(patterns, dtype):
    """Return int64 patterns as torch reads them, in float64, which holds each exactly."""
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[dtype.itemsize]
    return patterns.to(whole).view(dtype).double()


def by_exponent(patterns, field):
    """Return the half patterns whose exponent field is, or is not, special."""
    exponent = (patterns >> 10) & 31
    kind = {
        "normal": (exponent > 0) & (exponent < 31),
        "low": exponent == 0,
        "high": exponent == 31,
    }
    return patterns[kind[field]]


EXPLORED = {(5, 10): "fp16", (8, 7): "bf16", (8, 23): "fp32", (5, 2): "e5m2"}
"""Those of the widths that the explorer has."""


@pytest.fixture
def halves():
    return torch.arange(65_536)


def compare(decoded, patterns, dtype, exponent_bits, mantissa_bits):
    """Fail with the simplest pattern whose value differs, cut into its three fields."""
    expected = in_torch(patterns, dtype)
    got = decoded.ask(patterns, exponent_bits, mantissa_bits).value
    one_nan = [torch.where(one.isnan(), torch.nan, one) for one in (got, expected)]
    compared(*one_nan)  # any NaN is as good as another
    wrong = torch.where(expected.isnan(), ~got.isnan(), bits(got) != bits(expected))
    if not bool(wrong.any()):
        return
    simplest = min(patterns[wrong].tolist(), key=lambda pattern: (pattern.bit_count(), pattern))
    where = patterns.tolist().index(simplest)
    text = f"{simplest:0{1 + exponent_bits + mantissa_bits}b}"
    name = EXPLORED.get((exponent_bits, mantissa_bits))
    fields = f"{text[0]} {text[1 : 1 + exponent_bits]} {text[1 + exponent_bits :]}"
    raise Mismatch(
        f"{int(wrong.sum())} of {len(patterns)} patterns are read wrongly. The simplest:",
        (
            ("pattern", f"{simplest:#0{len(text) // 4 + 2}x} = {fields}"),
            ("expected", repr(float(expected[where]))),
            ("got", repr(float(got[where]))),
        ),
        f"formats.html#format={name}&bits={simplest:0{len(text) // 4}x}" if name else "",
    )


@gate
def test_returns_a_float(decoded_one):
    """`decode` returns a Python float."""
    for pattern in (0x3C00, 0x0000, 0x7C00):
        got = decoded_one.ask(pattern, *HALF).value
        if got is None:
            raise Mismatch(NOTHING)
        if type(got) is not float:
            rows = (("got", f"{type(got).__name__}: {got}"[:200]),)
            raise Mismatch("`decode` did not return a Python float.", rows)


def test_normal_numbers(decoded, halves):
    """All 61,440 normal numbers of float16."""
    compare(decoded, by_exponent(halves, "normal"), torch.float16, *HALF)


def test_zeros_and_subnormals(decoded, halves):
    """Both zeros and all 2,046 subnormals of float16."""
    compare(decoded, by_exponent(halves, "low"), torch.float16, *HALF)


def test_infinities_and_nan(decoded, halves):
    """Both infinities and every NaN of float16."""
    compare(decoded, by_exponent(halves, "high"), torch.float16, *HALF)


@pytest.fixture
def wide(rng):
    """Patterns of float32: around every power of two, and some drawn at random."""
    powers = torch.arange(512) << 23
    edges = torch.cat([powers, powers + 1, (powers - 1).clamp(min=0)])
    return torch.cat([edges, torch.randint(0, 2**32, (2000,), generator=rng)])


def test_other_widths(decoded, wide, rng):
    """float32, bfloat16 and float8_e5m2: no field is of a fixed width."""
    halves = torch.randint(0, 65_536, (2000,), generator=rng)
    compare(decoded, torch.arange(256), torch.float8_e5m2, 5, 2)
    compare(decoded, halves, torch.bfloat16, 8, 7)
    compare(decoded, wide, torch.float32, 8, 23)
