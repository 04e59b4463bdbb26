"""Probes of `broken_promises`: operators made for one question, and PyTorch's own."""

from itertools import count

import torch

from grader import probe

_NUMBERS = count()


def kernel_of(names, lines, calls):
    """Return a kernel with these parameters whose body is `lines`; it appends to `calls`."""
    body = "\n".join(f"    {line}" for line in ["calls.append(1)", *lines])
    scope = {"torch": torch, "calls": calls}
    exec(f"def kernel({', '.join(names)}):\n{body}\n", scope)
    return scope["kernel"]


def one_object_each(value, seen):
    """Return a value in which tensors with the same elements of one storage are one object.

    On their way here two names of a tensor become two tensors.
    """
    if isinstance(value, dict):
        return {name: one_object_each(one, seen) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(one_object_each(one, seen) for one in value)
    if not isinstance(value, torch.Tensor) or not value.numel():
        return value
    return seen.setdefault((value.data_ptr(), value.dtype, value.shape, value.stride()), value)


def as_data(broken):
    """Return the tuples of a set as sorted lists."""
    return sorted((list(one) for one in broken), key=str)


@probe(in_place=("arguments", "keywords"))
def promises(student, schema, names, lines, arguments, keywords):
    """Define an operator, ask `broken_promises` about a call of it, take the operator away again."""
    space, calls = f"promised_{next(_NUMBERS)}", []
    arguments, keywords = one_object_each([arguments, keywords], {})
    library = torch.library.Library(space, "DEF")
    try:
        library.define(schema)
        library.impl("op", kernel_of(names, lines, calls), "CompositeExplicitAutograd")
        operator = getattr(torch.ops, space).op.default
        broken = as_data(student.broken_promises(operator, *arguments, **keywords))
    finally:
        library._destroy()
    return {"broken": broken, "calls": len(calls)}


@probe(in_place=("arguments",))
def promises_of_aten(student, name, overload, arguments):
    """Ask `broken_promises` about a call of one of PyTorch's operators."""
    operator = getattr(getattr(torch.ops.aten, name), overload)
    return as_data(student.broken_promises(operator, *arguments))
