"""Where an object is found: a dotted name resolved, and every module that has the same object.

A function of torch's often stands in several modules, and each is a way to call it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple

_MISSING: Any = object()


class Found(NamedTuple):
    """What a dotted name stands for: `owner` has it under `name`; `path` leads to the owner."""

    path: tuple[tuple[Any, str], ...]
    value: Any

    @property
    def owner(self) -> Any:
        """A module, a class or another object."""
        return self.path[-1][0]

    @property
    def name(self) -> str:
        """The name by which the owner has it."""
        return self.path[-1][1]


def resolve(dotted: str) -> Found | None:
    """Return what a dotted name stands for, None if nothing. Modules on the way are imported."""
    first, *rest = dotted.split(".")
    path: list[tuple[Any, str]] = []
    try:
        value: Any = importlib.import_module(first)
        whole = first
        for part in rest:
            path.append((value, part))
            whole = f"{whole}.{part}"
            inner = getattr(value, part, _MISSING)
            value = importlib.import_module(whole) if inner is _MISSING else inner
    except ImportError:
        return None
    return Found(tuple(path), value) if path else None


def is_unloaded_module(dotted: str) -> bool:
    """Is it the name of a module that nobody has imported yet?"""
    parent, _, last = dotted.rpartition(".")
    if dotted in sys.modules or hasattr(sys.modules.get(parent), last):
        return False
    try:
        return parent in sys.modules and importlib.util.find_spec(dotted) is not None
    except (ImportError, ValueError):
        return False


@dataclass
class _Index:
    """Objects that several modules have, by their ids, as far as modules were looked at."""

    seen: dict[str, ModuleType] = field(default_factory=dict)
    first: dict[int, tuple[ModuleType, str]] = field(default_factory=dict)
    several: dict[int, list[tuple[ModuleType, str]]] = field(default_factory=dict)


_index = _Index()


def look_around() -> None:
    """Look at the modules that were loaded since the last time: 50 ms at first, for 2,000 of them."""
    for name, module in list(sys.modules.items()):
        # a notebook's own names change from cell to cell: they are looked at each time
        if name == "__main__" or not isinstance(module, ModuleType):
            continue
        if _index.seen.get(name) is module:  # another may have taken its name since
            continue
        _index.seen[name] = module
        for attribute, value in list(vars(module).items()):
            if _is_code(value):
                place = module, attribute
                first = _index.first.setdefault(id(value), place)
                if first is not place:
                    _index.several.setdefault(id(value), [first]).append(place)


def _is_code(value: object) -> bool:
    return issubclass(type(value), type | FunctionType | BuiltinFunctionType)


def homes(value: object) -> Iterator[tuple[ModuleType, str]]:
    """Yield each module that has this very object, with the name that it has there."""
    places = list(_index.several.get(id(value), ()))
    if not places and id(value) in _index.first:
        places = [_index.first[id(value)]]
    main = sys.modules.get("__main__")
    if main is not None:
        places += [(main, name) for name in list(vars(main))]
    for module, name in places:
        if vars(module).get(name, _MISSING) is value:
            yield module, name
