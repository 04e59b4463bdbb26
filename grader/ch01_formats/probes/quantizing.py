"""Probes of `quantize`, `quantized_add` and `quantized_concat`."""

from grader import probe


@probe
def quantized(student, x, axis):
    """Return (q, scale, zero point) of `x`."""
    return student.quantize(x, axis)


@probe
def quantized_sum(student, qx, pair_x, qy, pair_y, scale, zero_point):
    """Return the codes of a sum; a pair is (scale, zero point)."""
    return student.quantized_add((qx, *pair_x), (qy, *pair_y), scale, zero_point)


@probe
def quantized_joined(student, tensors, pairs, dim, scale, zero_point):
    """Return the codes of a concatenation; a pair is (scale, zero point)."""
    parts = [(q, *pair) for q, pair in zip(tensors, pairs, strict=True)]
    return student.quantized_concat(parts, dim, scale, zero_point)
