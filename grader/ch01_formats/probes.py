"""Chapter 1's probes: all of the chapter that runs beside a student's code."""

import torch

from grader import probe


@probe
def decoded(student, patterns, exponent_bits, mantissa_bits):
    """Return the values of `patterns` (n,) int64 as float64 (n,)."""
    values = [student.decode(p, exponent_bits, mantissa_bits) for p in patterns.tolist()]
    return torch.tensor(values, dtype=torch.float64)


@probe
def decoded_one(student, pattern, exponent_bits, mantissa_bits):
    """Return what `decode` gives for one pattern, as it is."""
    return student.decode(pattern, exponent_bits, mantissa_bits)


@probe
def rounded(student, x):
    """Return `x` rounded to bfloat16."""
    return student.round_to_bf16(x)


@probe
def limits(student, formats):
    """Return what `format_limits` gives for each (exponent bits, mantissa bits)."""
    return [student.format_limits(*widths) for widths in formats]


@probe
def spaced(student, x):
    """Return the spacing of each number in `x`."""
    return student.spacing(x)


@probe
def shortened(student, x, kept_bits):
    """Return `x` with its mantissa rounded to `kept_bits`."""
    return student.round_mantissa(x, kept_bits)


@probe
def encoded(student, x, dtype, saturate):
    """Return the FP8 patterns of `x`."""
    return student.encode_fp8(x, dtype, saturate)


@probe
def by_chance(student, x, noise):
    """Return `x` rounded to bfloat16 with this noise."""
    return student.stochastic_round(x, noise)
