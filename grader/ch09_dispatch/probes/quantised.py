"""Probes of `Affine8`: what operators make of one, as plain data."""

import copy

import torch
from torch import nn

from grader import probe


def facts_of(student, one, q):
    """Return what a result is: its class, its looks, and where its numbers are, seen from `q`."""
    if not isinstance(one, student.Affine8):
        return {"class": type(one).__name__}
    shared = one.q.untyped_storage().data_ptr() == q.untyped_storage().data_ptr()
    return {
        "class": "Affine8",
        "looks": [str(one.dtype), list(one.shape), list(one.stride())],
        "q": [str(one.q.dtype), list(one.q.shape), list(one.q.stride()), one.q.storage_offset()],
        "shares q": shared,
    }


def several(result):
    return list(result) if isinstance(result, tuple | list) else [result]


@probe
def looks(student, q, scale):
    """Return what an `Affine8` of `q` looks like, and what it is made of."""
    one = student.Affine8(q, scale)
    return {
        "facts": facts_of(student, one, q),
        "device": str(one.device),
        "requires grad": one.requires_grad,
        "is a tensor": isinstance(one, torch.Tensor),
        "q": one.q,
        "scale": one.scale,
        "same": [one.q is q, one.scale is scale],
        "bytes": bytes_of(one),
        "float": one.dequantize(),
        "float's class": type(one.dequantize()).__name__,
    }


def bytes_of(one):
    """Return the bytes of the tensors among an object's attributes, each storage once."""
    kept = [value for value in vars(one).values() if isinstance(value, torch.Tensor)]
    storages = {value.untyped_storage().data_ptr(): value.untyped_storage() for value in kept}
    return sum(storage.nbytes() for storage in storages.values())


@probe
def quantised(student, x):
    """Return `q` and the scale for `x`."""
    one = student.Affine8.quantize(x)
    return {"class": type(one).__name__, "q": one.q, "scale": one.scale}


@probe
def viewed(student, q, scale, expression):
    """Return facts of the views `expression` of an `Affine8` called a, and the bytes they are made of."""
    names = {"torch": torch, "a": student.Affine8(q, scale)}
    results = several(eval(expression, names))
    return {
        "facts": [facts_of(student, one, q) for one in results],
        "scales": [getattr(one, "scale", None) for one in results],
        "bytes": [bytes_of(one) for one in results],
    }


@probe
def computed(student, qs, scales, x, expression):
    """Return what `expression` gives of two `Affine8` a and b and a plain x, and its class."""
    a, b = map(student.Affine8, qs, scales)
    names = {"torch": torch, "F": nn.functional, "a": a, "b": b, "x": x}
    results = several(eval(expression, names))
    return {"results": results, "classes": [type(one).__name__ for one in results]}


@probe(in_place=("qs", "x"))
def written_to(student, qs, scales, x, lines):
    """Run lines that write to two `Affine8` a and b and a plain x."""
    a, b = map(student.Affine8, qs, scales)
    names = {"torch": torch, "a": a, "b": b, "x": x, "whole": a}
    exec("\n".join(lines), names)
    return {
        "is the same": names["a"] is a,
        "q": [a.q, b.q],
        "scale": [a.scale, b.scale],
        "x is plain": type(x).__name__,
    }


@probe
def copied(student, q, scale, expression):
    """Return facts of a copy of an `Affine8` called a, and what it holds after a is set to zero."""
    a = student.Affine8(q.clone(), scale)
    one = eval(expression, {"torch": torch, "copy": copy, "nn": nn, "a": a})
    found = facts_of(student, one, a.q)
    a.q.zero_()
    return {"facts": found, "q": getattr(one, "q", None), "scale": getattr(one, "scale", None)}


@probe
def in_a_module(student, q, scale, bias, x):
    """Return what a linear layer with such a weight gives, and gradients."""
    layer = nn.Linear(q.shape[1], q.shape[0])
    layer.weight = nn.Parameter(student.Affine8(q, scale), requires_grad=False)
    layer.bias = nn.Parameter(bias)
    x.requires_grad_()
    y = layer(x)
    (y * y).sum().backward()
    return {
        "y": y.detach(),
        "gradients": [x.grad, layer.bias.grad],
        "in state_dict": type(layer.state_dict()["weight"]).__name__,
        "class": type(layer.weight).__name__,
    }
