"""Samples of any kind as plain data: NumPy arrays and namedtuples do not cross, recipes do."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

Point = namedtuple("Point", ["x", "y"])
Single = namedtuple("Single", ["only"])
NAMED = {"Point": Point, "Single": Single}
MAPPINGS = {"dict": dict, "OrderedDict": OrderedDict, "proxy": MappingProxyType}
ODD = {"None": None, "set": {1}, "slice": slice(2), "type": int, "complex": 1j, "Ellipsis": ...}


def cook(recipe: tuple) -> Any:
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


def served(batch: Any) -> list:
    """Return a batch as lists of a kind and a content; a tuple that is not named counts as a list."""
    if isinstance(batch, torch.Tensor):
        return ["tensor", batch]
    if isinstance(batch, Mapping):
        return ["dict", [[key, served(value)] for key, value in batch.items()]]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return [type(batch).__name__, [served(item) for item in batch]]
    if isinstance(batch, list | tuple):
        if batch and all(isinstance(item, str | bytes) for item in batch):
            return ["texts", [str(i) if isinstance(i, str) else bytes(i) for i in batch]]
        return ["list", [served(item) for item in batch]]
    return ["other", type(batch).__name__]


def leaves(value: Any) -> Iterator[torch.Tensor]:
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
