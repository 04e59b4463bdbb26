"""Functions of torch's that do what another does: by their names, which are the same below.

What is documented as `torch.einsum` is also `torch._VF.einsum` and `torch.ops.aten.einsum`: other
objects, which no search for the same one finds.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from grader.inside.homes import Found, resolve

_BELOW = ("torch._C._nn", "torch._C._VariableFunctions", "torch._refs", "torch._refs.nn.functional")
"""Where torch keeps functions of tensors besides the places that it documents."""


def relatives(found: Found) -> Iterator[Found]:
    """Yield the other functions of torch's that do what one of its functions does, by their names."""
    home = getattr(found.owner, "__module__" if isinstance(found.owner, type) else "__name__", "")
    if not f"{home}.".startswith("torch.") or isinstance(found.value, type | ModuleType):
        return
    name = found.name.removeprefix("linalg_")
    places = [(owner, name) for owner in _BELOW]
    for below in (name, f"linalg_{name}"):
        places += [("torch.ops.aten", below), ("torch._C._linalg", below)]
    for owner, known in places:
        relative = resolve(f"{owner}.{known}") if hasattr(_value(owner), known) else None
        if relative is not None and relative.value is not found.value:
            yield relative


@functools.cache
def _value(dotted: str) -> Any:
    found = resolve(dotted)
    return torch if found is None else found.value


def functions_of(operator: str) -> Iterator[Found]:
    """Yield the functions of torch's Python API that have an operator's name.

    Composite operators (`narrow`, `linear`) are seen there alone: below them their parts run.
    """
    for owner in ("torch", "torch.Tensor", "torch.nn.functional", *_BELOW):
        found = resolve(f"{owner}.{operator}") if hasattr(_value(owner), operator) else None
        if found is not None and callable(found.value) and not isinstance(found.value, ModuleType):
            yield found
