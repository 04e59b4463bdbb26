"""Probes of `decode`, `format_limits` and `spacing`: what a format can say."""

import torch

from grader import probe


@probe
def decoded(student, patterns, exponent_bits, mantissa_bits):
    """Return the values of `patterns` (n,) int64 as float64 (n,), and which is no `float`."""
    return _values(student, patterns, exponent_bits, mantissa_bits)


@probe
def decoded_formats(student, formats):
    """Return the same for the patterns of each (patterns, exponent bits, mantissa bits)."""
    return [_values(student, *each) for each in formats]


def _values(student, patterns, exponent_bits, mantissa_bits):
    patterns, decode = patterns.tolist(), student.decode
    values = [decode(p, exponent_bits, mantissa_bits) for p in patterns]
    others = [
        (pattern, type(value).__name__)
        for pattern, value in zip(patterns, values, strict=True)
        if type(value) is not float
    ]
    return {
        "values": torch.tensor(values, dtype=torch.float64),
        "others": len(others),
        "first": min(others, key=lambda each: (each[0].bit_count(), each[0]), default=None),
    }


@probe
def decoded_one(student, pattern, exponent_bits, mantissa_bits):
    """Return what `decode` gives for one pattern, as it is."""
    return student.decode(pattern, exponent_bits, mantissa_bits)


@probe
def limits(student, formats):
    """Return what `format_limits` gives for each (exponent bits, mantissa bits)."""
    return [student.format_limits(*widths) for widths in formats]


@probe
def spaced(student, x):
    """Return the spacing of each number in `x`."""
    return student.spacing(x)
