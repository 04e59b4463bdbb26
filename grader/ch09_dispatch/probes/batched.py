"""The probe of `vmap`: functions of lines, how often they were called, how many operators ran."""

import warnings

import torch

from grader import probe, watch_ops

HEAD = "def f(x, y):"
"""How a program begins whose lines a check gives."""


def as_program(lines):
    """Return the text of a function of these lines."""
    return "\n    ".join([HEAD, *lines])


def calls_of_mapped(vmap, lines, tensors, in_dims, out_dims):
    """Map the function of these lines; return its result and what was observed.

    lines: may use x and y (the first two tensors), w (the third, not an argument), `vmap` and `torch`
    """
    x, y, w = tensors
    calls = []
    names = {"torch": torch, "vmap": vmap, "w": w, "calls": calls, "F": torch.nn.functional}
    exec(as_program(["calls.append(1)", *lines]), names)
    with warnings.catch_warnings(record=True) as caught, watch_ops() as ops:
        warnings.simplefilter("always")
        result = vmap(names["f"], in_dims, out_dims)(x, y)
    return {
        "result": result,
        "calls": len(calls),
        "operators": len(ops.names),
        "warnings": [str(one.message) for one in caught],
    }


@probe(in_place=("tensors",))
def mapped(student, lines, tensors, in_dims, out_dims):
    """Return what the student's `vmap` gives for a function of these lines."""
    return calls_of_mapped(student.vmap, lines, tensors, in_dims, out_dims)
