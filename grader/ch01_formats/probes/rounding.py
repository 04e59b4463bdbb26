"""Probes of `round_to_bf16`, `round_mantissa`, `encode_fp8` and `stochastic_round`."""

from grader import probe


@probe
def rounded(student, x):
    """Return `x` rounded to bfloat16."""
    return student.round_to_bf16(x)


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
