"""Probes of `functionalize`, and a witness of what is written, and into which argument."""

import torch

from grader import probe, watch_memory
from grader.inside.dispatch import DispatchMode
from grader.inside.instruments.ops import short_name

HEAD = "def f(x, y):"
"""How a program begins whose lines a check gives."""


def as_program(lines):
    """Return the text of a function of these lines."""
    return "\n    ".join([HEAD, *lines])


def function_of(lines):
    """Return the function `f(x, y)` of these lines."""
    names = {"torch": torch}
    exec(as_program(lines), names)
    return names["f"]


class Writes(DispatchMode):
    """Notes each operator that writes: its name, and the number of the input, None if it is none."""

    def __init__(self, inputs):
        super().__init__()
        self.inputs = inputs
        self.notes = []

    def before(self, operator, args, kwargs):
        if operator._schema.is_mutable and operator is not torch.ops.aten.detach_.default:
            # `detach_` is part of `torch.tensor`, and changes no element
            self.notes.append([short_name(operator), self.number(kwargs.get("out", args[0]))])

    def number(self, tensor):
        """Return which of the inputs this tensor is, all of it."""
        if not isinstance(tensor, torch.Tensor):
            return None
        for number, one in enumerate(self.inputs):
            if one.data_ptr() == tensor.data_ptr() and one.shape == tensor.shape:
                return number
        return None


@probe(in_place=("inputs",))
def functionalized(student, lines, inputs, calls):
    """Call what `functionalize` gives, `calls` times; return the last result, and what was seen."""
    function, ran = function_of(lines), []

    def counted(*args):
        ran.append(1)
        return function(*args)

    run = student.functionalize(counted)
    for _ in range(calls):
        with Writes(inputs) as writes:
            result = run(*inputs)
    return {"result": result, "writes": writes.notes, "ran": len(ran)}


@probe(in_place=("inputs",))
def functionalized_one(student, lines, inputs):
    """Give the first input as both arguments; return the result, and what was written."""
    with Writes(inputs) as writes:
        result = student.functionalize(function_of(lines))(inputs[0], inputs[0])
    return {"result": result, "writes": writes.notes}


@probe(in_place=("inputs",))
def functionalized_then_written(student, lines, inputs, by):
    """Add `by` to the first input when all is done; return what the results are then."""
    result = student.functionalize(function_of(lines))(*inputs)
    inputs[0].add_(by)
    return {"result": result, "is the argument": [one is inputs[0] for one in result]}


@probe(in_place=("inputs",))
def functionalized_memory(student, programs, inputs):
    """Return for each program the bytes that it allocates, functional and as it is."""
    found = []
    for lines in programs:
        function = function_of(lines)
        counts = []
        for run in (student.functionalize(function), function):
            given = [one.clone() for one in inputs]
            with watch_memory() as memory:
                run(*given)
            counts.append(memory.new_bytes)
        found.append(counts)
    return found
