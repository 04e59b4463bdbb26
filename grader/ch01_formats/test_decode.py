"""Checks of `decode`: every half pattern, and the same rules at all other widths."""

import pytest
import torch

from grader import NOTHING, Mismatch, bits, compared, gate

HALF = 5, 10


def by_rule(patterns, exponent_bits, mantissa_bits):
    """Return what int64 patterns stand for, in float64, which holds each exactly."""
    mantissa = patterns & ((1 << mantissa_bits) - 1)
    exponent = (patterns >> mantissa_bits) & ((1 << exponent_bits) - 1)
    bias = 2 ** (exponent_bits - 1) - 1
    whole = mantissa + (exponent > 0) * (1 << mantissa_bits)
    power = exponent.clamp(min=1) - bias - mantissa_bits
    value = whole.double() * ((power + 1023) << 52).view(torch.float64)
    special = torch.where(mantissa == 0, torch.inf, torch.nan)
    value = torch.where(exponent == (1 << exponent_bits) - 1, special, value)
    return torch.where(patterns >> (exponent_bits + mantissa_bits) > 0, -value, value)


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


def compare(decoded, patterns):
    """Compare patterns of float16."""
    judge(decoded.ask(patterns, *HALF).value, patterns, *HALF)


def judge(found, patterns, exponent_bits, mantissa_bits):
    """Fail with the simplest pattern whose value differs, cut into its three fields.

    Where all values are right, fail if one of them is of another type.
    """
    got = found["values"]
    expected = by_rule(patterns, exponent_bits, mantissa_bits)
    one_nan = [torch.where(one.isnan(), torch.nan, one) for one in (got, expected)]
    compared(*one_nan)  # any NaN is as good as another
    wrong = torch.where(expected.isnan(), ~got.isnan(), bits(got) != bits(expected))
    if not bool(wrong.any()):
        assert_floats(found, len(patterns), exponent_bits, mantissa_bits)
        return
    simplest = min(patterns[wrong].tolist(), key=lambda pattern: (pattern.bit_count(), pattern))
    where = patterns.tolist().index(simplest)
    text = f"{simplest:0{1 + exponent_bits + mantissa_bits}b}"
    name = EXPLORED.get((exponent_bits, mantissa_bits))
    fields = f"{text[0]} {text[1 : 1 + exponent_bits]} {text[1 + exponent_bits :]}"
    raise Mismatch(
        f"{int(wrong.sum())} of {len(patterns)} patterns are read wrongly. The simplest:",
        (
            ("call", f"decode({simplest:#x}, {exponent_bits}, {mantissa_bits})"),
            ("fields", fields),
            ("expected", repr(float(expected[where]))),
            ("got", repr(float(got[where]))),
        ),
        f"formats.html#format={name}&bits={simplest:0{len(text) // 4}x}" if name else "",
    )


def assert_floats(found, count, exponent_bits, mantissa_bits):
    """Fail if there is a pattern whose value is no Python float."""
    if found["first"] is None:
        return
    pattern, kind = found["first"]
    compared(kind)
    rows = (
        ("call", f"decode({pattern:#x}, {exponent_bits}, {mantissa_bits})"),
        ("expected", "a float"),
        ("got", f"right, but of type {kind}"[:200]),
    )
    what = f"{found['others']} of {count} patterns are not read as a Python `float`. The simplest:"
    raise Mismatch(what, rows)


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
    compare(decoded, by_exponent(halves, "normal"))


def test_zeros_and_subnormals(decoded, halves):
    """Both zeros and all 2,046 subnormals of float16."""
    compare(decoded, by_exponent(halves, "low"))


def test_infinities_and_nan(decoded, halves):
    """Both infinities and every NaN of float16."""
    compare(decoded, by_exponent(halves, "high"))


WHOLE = 10
"""Formats of at most so many bits are read whole: from 16 to 1,024 patterns each."""


FEW = 6
"""Formats, the smallest, that are a question of their own: quick to be heard again."""


def some_patterns(rng, exponent_bits, mantissa_bits):
    """Return patterns of a format: all, or each kind of mantissa with the exponents that decide.

    Of formats that have a name, with every exponent.
    """
    width = 1 + exponent_bits + mantissa_bits
    if width <= WHOLE:
        return torch.arange(1 << width)
    top, full = (1 << exponent_bits) - 1, (1 << mantissa_bits) - 1
    exponents = torch.tensor([0, 1, top // 2, top // 2 + 1, top - 1, top])
    if (exponent_bits, mantissa_bits) in EXPLORED:
        exponents = torch.arange(top + 1)
    mantissas = torch.tensor([0, 1, full // 2 + 1, full])
    edges = ((exponents[:, None] << mantissa_bits) | mantissas).reshape(-1)
    drawn = torch.randint(0, 1 << (width - 1), (20,), generator=rng)
    magnitudes = torch.cat([edges, drawn])
    return torch.cat([magnitudes, magnitudes | 1 << (width - 1)])


def test_other_widths(decoded_formats, rng):
    """All formats of 2 to 8 exponent and 1 to 23 mantissa bits: nothing is of a fixed width."""
    widths = [(e, m) for e in range(2, 9) for m in range(1, 24)]
    widths.sort(key=lambda pair: (sum(pair), pair not in EXPLORED))  # the smallest is shown
    formats = [(some_patterns(rng, *pair), *pair) for pair in widths]
    answers = []
    for some in (formats[:FEW], formats[FEW:]):
        answers += decoded_formats.ask([list(each) for each in some]).value
    failures = []
    for got, asked in zip(answers, formats, strict=True):
        try:
            judge(got, *asked)
        except Mismatch as mismatch:
            failures.append(mismatch)
    if failures:
        first = failures[0]
        what = (
            f"{len(failures)} of {len(formats)} formats are read wrongly. In the smallest of them, "
        )
        first.what = what + first.what
        raise first
