"""Probes of `conv2d` and `linear_as_conv`."""

import torch

from grader import probe, watch_flops, watch_memory


@probe(in_place=("x", "weight", "bias"))
def convolved(student, x, weight, bias, options):
    """Return a convolution; `options` are (stride, padding, dilation, groups)."""
    return student.conv2d(x, weight, bias, *options)


@probe
def convolved_plainly(student, x, weight):
    """Return a convolution for which nothing but `x` and `weight` is given."""
    return student.conv2d(x, weight)


@probe(in_place=("x", "weight", "bias"))
def conv_cost(student, x, weight, bias, options):
    """Return the result of a convolution, the FLOPs and the most new bytes alive at once."""
    with watch_flops() as flops, watch_memory() as memory:
        result = student.conv2d(x, weight, bias, *options)
    return {"result": result, "flops": flops.total, "peak": memory.peak_bytes}


@probe(in_place=("weight", "bias"))
def linear_converted(student, weight, bias, size, x):
    """Convert a linear layer, run it on `x`, then change the linear layer and run it again."""
    linear = torch.nn.Linear(1, 1, bias=bias is not None, dtype=weight.dtype)
    linear.out_features, linear.in_features = weight.shape
    linear.weight = torch.nn.Parameter(weight)
    if bias is not None:
        linear.bias = torch.nn.Parameter(bias)
    conv = student.linear_as_conv(linear, size)
    found = {
        "is a Conv2d": isinstance(conv, torch.nn.Conv2d),
        "weight": conv.weight,
        "bias": conv.bias,
        "parameters": [name for name, _ in conv.named_parameters()],
        "before": conv(x).detach(),
    }
    with torch.no_grad():
        linear.weight.mul_(2)
    found["after"] = conv(x).detach()
    return found


@probe
def linear_refused(student, features, size):
    """Convert a linear layer of so many input features."""
    student.linear_as_conv(torch.nn.Linear(features, 2), size)
