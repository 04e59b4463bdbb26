"""Probes of `collate` and `pad_collate`, and the samples that they get, made from recipes."""

from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import torch

from grader import probe

# Samples of any kind as recipes, which are plain data: arrays and namedtuples do not cross.
Point = namedtuple("Point", ["x", "y"])


Single = namedtuple("Single", ["only"])


NAMED = {"Point": Point, "Single": Single}


MAPPINGS = {"dict": dict, "OrderedDict": OrderedDict, "proxy": MappingProxyType}


ODD = {"None": None, "set": {1}, "slice": slice(2), "type": int, "complex": 1j, "Ellipsis": ...}


def cook(recipe):
    """Return the sample that a recipe, a pair of a kind and what it is made of, describes."""
    kind, content = recipe
    if kind in NAMED:
        return NAMED[kind](*map(cook, content))
    if kind in MAPPINGS:
        pairs = {key: cook(value) for key, value in content}
        return pairs if kind == "dict" else MAPPINGS[kind](pairs)
    match kind:
        case "plain":
            return content
        case "tensor":
            return content.clone(memory_format=torch.preserve_format)
        case "view":  # as it came, with its layout
            return content
        case "array":
            return np.array(content.tolist(), dtype=str(content.dtype).removeprefix("torch."))
        case "words":
            return np.array(content)
        case "scalar":
            name, value = content
            return getattr(np, name)(value)
        case "odd":
            return ODD[content]
        case "tuple":
            return tuple(map(cook, content))
        case "list":
            return list(map(cook, content))
    raise ValueError(kind)


def as_code(recipe):
    """Return the sample that a recipe describes as Python, with zeros for what tensors hold."""
    kind, content = recipe
    if kind in ("list", "tuple"):
        inside = ", ".join(map(as_code, content))
        return f"[{inside}]" if kind == "list" else f"({inside}{',' * (len(content) == 1)})"
    if kind in NAMED:
        return f"{kind}({', '.join(map(as_code, content))})"
    if kind in MAPPINGS:
        pairs = ", ".join(f"{key!r}: {as_code(value)}" for key, value in content)
        name = {"dict": "", "proxy": "types.MappingProxyType"}.get(kind, kind)
        return f"{name}({{{pairs}}})" if name else f"{{{pairs}}}"
    match kind:
        case "tensor" | "view":
            return code_of_zeros(content)
        case "array":
            name = str(content.dtype).removeprefix("torch.")
            return f"np.zeros({tuple(content.shape)}, {name!r})"
        case "words":
            return f"np.array({content!r})"
        case "scalar":
            return f"np.{content[0]}({content[1]!r})"
        case "odd":
            return {"type": "int"}.get(content, repr(ODD[content]))
    return repr(content)


def code_of_zeros(tensor):
    """Return the code of a tensor of this shape and dtype, with zeros in it."""
    shape = ", ".join(map(str, tensor.shape)) or "()"
    dtype = "" if tensor.dtype is torch.float32 else f", dtype={tensor.dtype}"
    return f"torch.zeros({shape}{dtype})"


def served(batch):
    """Return a batch as lists of a kind and a content; a tuple that is not named counts as a list.

    A mapping that is no dict is of another kind than one that is.
    """
    if isinstance(batch, torch.Tensor):
        return ["tensor", batch]
    if isinstance(batch, Mapping):
        kind = "dict" if isinstance(batch, dict) else "mapping that is no dict"
        return [kind, [[key, served(value)] for key, value in batch.items()]]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return [type(batch).__name__, [served(item) for item in batch]]
    if isinstance(batch, list | tuple):
        if batch and all(isinstance(item, str | bytes) for item in batch):
            return ["texts", [str(i) if isinstance(i, str) else bytes(i) for i in batch]]
        return ["list", [served(item) for item in batch]]
    return ["other", type(batch).__name__]


def leaves(value):
    """Yield each tensor, and each array as a tensor on its memory, inside of samples or a batch."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, np.ndarray):
        if value.dtype.kind not in "SUO":
            yield torch.as_tensor(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)


@probe
def collated(student, recipes):
    """Return the batch of cooked samples, and the samples' tensors once the batch was written over."""
    samples = [cook(recipe) for recipe in recipes]
    batch = student.collate(samples)
    as_it_came = copy_tensors(served(batch))
    for tensor in leaves(batch):
        write_over(tensor)
    return {"batch": as_it_came, "samples": [leaf.clone() for leaf in leaves(samples)]}


def write_over(tensor):
    """Change every element, unless several share a cell: then nothing can be written."""
    if not any(
        step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape, strict=True)
    ):
        tensor.copy_(tensor.logical_not())


def copy_tensors(value):
    """Return nested lists with a copy of each tensor in them."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    return [copy_tensors(item) for item in value] if isinstance(value, list) else value


@probe
def padded(student, samples, options):
    """Return batch and mask."""
    result = student.pad_collate(samples, **options)
    batch, mask = result
    return {"pair": type(result).__name__, "batch": copy_of(batch), "mask": copy_of(mask)}


def copy_of(value):
    """Return a tensor's copy, and anything else as it is."""
    return value.clone() if isinstance(value, torch.Tensor) else value


@probe
def padded_over(student, samples):
    """Return copies of the samples as they are once batch and mask were written over."""
    mine = [sample.clone(memory_format=torch.preserve_format) for sample in samples]
    for tensor in student.pad_collate(mine):
        if isinstance(tensor, torch.Tensor):
            write_over(tensor)
    return [sample.clone() for sample in mine]
