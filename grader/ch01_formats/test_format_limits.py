"""Checks of `format_limits`: each number by itself over all small formats, then float64."""

from fractions import Fraction

import pytest
import torch

from grader import NOTHING, Mismatch, assert_equal, compared, gate

KEYS = ["max", "smallest_normal", "smallest_subnormal", "eps"]

NAMED = {
    (5, 10): torch.float16,
    (8, 7): torch.bfloat16,
    (8, 23): torch.float32,
    (5, 2): torch.float8_e5m2,
    (11, 52): torch.float64,
}


def in_torch(dtype):
    """Return the limits of a format that torch has; `finfo` does not know subnormals."""
    info = torch.finfo(dtype)
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    one = torch.ones(1, dtype=whole).view(dtype).double().item()
    return dict(zip(KEYS, [info.max, info.smallest_normal, one, info.eps], strict=True))


def by_rule(exponent_bits, mantissa_bits):
    """Return the limits of any format, from whole numbers."""
    lowest = 2 - 2 ** (exponent_bits - 1)  # the exponent of the smallest normal number
    two = Fraction(2)
    exact = [
        (2 ** (mantissa_bits + 1) - 1) * two ** (1 - lowest - mantissa_bits),
        two**lowest,
        two ** (lowest - mantissa_bits),
        two**-mantissa_bits,
    ]
    return dict(zip(KEYS, map(float, exact), strict=True))


def name_of(widths):
    dtype = NAMED.get(tuple(widths))
    known = f", {str(dtype).removeprefix('torch.')}" if dtype else ""
    return f"{widths[0]} exponent bits and {widths[1]} mantissa bits{known}"


@pytest.fixture
def small():
    """All formats that fit into a float32, those with a name first."""
    named = [list(widths) for widths in NAMED if widths != (11, 52)]
    return named + [[e, m] for e in range(2, 9) for m in range(1, 24) if (e, m) not in NAMED]


@pytest.fixture
def wide():
    """float64, and what else has an exponent or a mantissa as wide as its own, or nearly."""
    return [[11, 52], [11, 1], [2, 52], [10, 52], [11, 51], [9, 40], [10, 30]]


def compare(limits, formats, keys):
    answers = limits.ask(formats).value
    got = [
        [answer.get(key) if isinstance(answer, dict) else None for key in keys]
        for answer in answers
    ]
    expected = []
    for widths in formats:
        named = NAMED.get(tuple(widths))
        values = in_torch(named) if named else by_rule(*widths)
        expected.append([values[key] for key in keys])
    compared(got, expected)
    wrong = [
        (widths, key, theirs, ours)
        for widths, row, right in zip(formats, got, expected, strict=True)
        for key, theirs, ours in zip(keys, row, right, strict=True)
        if theirs != ours
    ]
    if wrong:
        widths, key, theirs, ours = wrong[0]
        raise Mismatch(
            f"{len(wrong)} of {len(formats) * len(keys)} limits are wrong. The first is `{key}`:",
            (("format", name_of(widths)), ("expected", repr(ours)), ("got", repr(theirs))),
        )


@gate
def test_returns_four_floats(limits):
    """Returns a dict with the four keys and a float under each."""
    for answer in limits.ask([[5, 10], [8, 7]]).value:
        if answer is None:
            raise Mismatch(NOTHING)
        if not isinstance(answer, dict):
            rows = (("got", f"{type(answer).__name__}: {answer}"[:200]),)
            raise Mismatch("`format_limits` did not return a dict.", rows)
        assert_equal(sorted(map(str, answer)), sorted(KEYS), "The keys are not the ones asked for.")
        for key, value in answer.items():
            if type(value) is not float:
                rows = (("got", f"{type(value).__name__}: {value}"[:200]),)
                raise Mismatch(f"`{key}` is not a Python float.", rows)


def test_max(limits, small):
    """The largest finite number of all 161 formats with up to 8 and 23 bits."""
    compare(limits, small, ["max"])


def test_smallest_normal(limits, small):
    """Their smallest normal number."""
    compare(limits, small, ["smallest_normal"])


def test_smallest_subnormal(limits, small):
    """Their smallest positive number."""
    compare(limits, small, ["smallest_subnormal"])


def test_eps(limits, small):
    """Their distance from 1 to the next larger number."""
    compare(limits, small, ["eps"])


def test_float64(limits, wide):
    """float64 and formats nearly as wide: all four, and no overflow on the way."""
    compare(limits, wide, KEYS)
