"""Probes of tensors that are made of nested lists: `tensor_of`."""

import torch

from grader import apart, each, probe, watch_memory


@probe
def tensors_of(student, cases):
    """Return the tensor for each tuple of arguments."""
    return each(student.tensor_of, cases)


@probe
def tensors_of_under(student, default, cases):
    """Return the same while `default` is the default dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        return each(student.tensor_of, cases)
    finally:
        torch.set_default_dtype(before)


@probe
def making_bytes(student, cases):
    """Return how many bytes were allocated for each tuple of arguments."""
    found = []
    for case in cases:
        with watch_memory() as memory:
            each(student.tensor_of, [case])
        found.append(memory.new_bytes)
    return found


@probe
def endless(student, depth):
    """Return what is made of a list that is, `depth` lists further down, its own first item."""
    inner = []
    data = inner
    for _ in range(depth - 1):
        data = [data]
    inner.append(data)
    # who notes lengths and nothing else is still at it when the time is up
    return apart(lambda: student.tensor_of(data), seconds=2)


@probe
def rows_that_are_one(student, row, count):
    """Return what is made of a list in which the same list stands `count` times."""
    return student.tensor_of([row] * count)
