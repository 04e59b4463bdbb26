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


@probe
def sgd_trained(student, weight, grads, lr):
    """Return a parameter that starts at `weight` after a step per row of `grads`, and the state."""
    return _sgd(student, torch.nn.Parameter(weight.clone()), None, grads, lr)


@probe(in_place=("state",))
def sgd_resumed(student, weight, state, grads, lr):
    """Return the same of a run that starts from an earlier one's weight and state."""
    return _sgd(student, torch.nn.Parameter(weight.clone()), state, grads, lr)


@probe(in_place=("memory", "weight"))
def sgd_in_place(student, memory, weight, grads, lr):
    """Step a parameter that is `weight` itself, a view into `memory`."""
    _sgd(student, torch.nn.Parameter(weight), None, grads, lr)


def _sgd(student, parameter, state, grads, lr):
    with torch.no_grad():
        for grad in grads:
            state = student.sgd_step(parameter, grad, lr, state)
    return {"weight": parameter.detach(), "state": state}


@probe
def column_sums(student, x):
    """Return the sums of the columns of `x`."""
    return student.compensated_sum(x)


@probe
def loss_scale_stepped(student, grads, scale, streak, interval):
    """Return what one call gives."""
    return student.loss_scale_step(grads, scale, streak, interval)


@probe
def loss_scales(student, batches, scale, streak, interval):
    """Return (skipped, scale, streak) after each of `batches`, a list of lists of gradients."""
    history = []
    for grads in batches:
        unscaled, scale, streak = student.loss_scale_step(grads, scale, streak, interval)
        history.append((unscaled is None, scale, streak))
    return history


@probe
def loss_scale_trained(student, factors, scale, interval, steps):
    """Train a float32 weight of 1.0 on a tiny float16 gradient, from a scale that is far off.

    Return (the gradient or None, the scale) of each step.
    """
    weight, streak, history = torch.ones(()), 0, []
    for _ in range(steps):
        half = weight.half().requires_grad_()
        loss = (half * factors[0] * factors[1]).float() * scale
        loss.backward()
        unscaled, scale, streak = student.loss_scale_step([half.grad], scale, streak, interval)
        if unscaled is not None:
            weight = weight - unscaled[0]
        history.append((None if unscaled is None else unscaled[0], scale))
    return history


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


@probe
def int8_product(student, a, a_zero, b, b_zero, idle=False):
    """Return the product, and how often the matrix unit was called. An idle unit gives zeros."""
    calls = []

    def multiply(a, b):
        if a.dtype is not torch.int8 or b.dtype is not torch.int8:
            raise TypeError("The matrix unit takes int8 operands.")
        calls.append(None)
        # no aten::mm here: it is off limits for whoever calls this
        product = (a.int()[:, :, None] * b.int()[None]).sum(1).int()
        return torch.zeros_like(product) if idle else product

    return {"product": student.int8_matmul(a, a_zero, b, b_zero, multiply), "calls": len(calls)}


@probe
def bf16x3_product(student, a, b, idle=False):
    """Return the product, and the unit's work: the sum of m * k * n over its calls.

    An idle unit gives zeros.
    """
    work = []

    def multiply(a, b):
        if a.dtype is not torch.bfloat16 or b.dtype is not torch.bfloat16:
            raise TypeError("The matrix unit takes bfloat16 operands.")
        work.append(a.shape[0] * a.shape[1] * b.shape[1])
        # no aten::mm here: it is off limits for whoever calls this
        product = (a.double()[:, :, None] * b.double()[None]).sum(1).float()
        return torch.zeros_like(product) if idle else product

    return {"product": student.matmul_bf16x3(a, b, multiply), "work": sum(work)}
