"""A dispatcher as the exercise asks for it, and a scenario as code to paste; see probes/walks.py."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import torch

ORDER = [
    "FuncTorchBatched",
    "AutocastCPU",
    "AutogradMeta",
    "AutogradCPU",
    "ADInplaceOrView",
    "Negative",
    "Conjugate",
    "Functionalize",
    "SparseCPU",
    "Meta",
    "CPU",
]
"""Keys in PyTorch's order, the most urgent first."""


def keys_of(tensor: torch.Tensor) -> set[str]:
    """Return the names of a tensor's dispatch keys."""
    text = str(torch._C._dispatch_keys(tensor))
    return {name for name in text[len("DispatchKeySet(") : -1].split(", ") if name}


class Model:
    """The rules of `Dispatcher`, with one stack of changes per thread."""

    def __init__(self, order: list[str]) -> None:
        self.order = order
        self.table: dict[tuple[str | None, str], Any] = {}
        self.changes: dict[int, list[tuple[str, set[str]]]] = {}

    def register(self, op: str, key: str, kernel: Any) -> None:
        self.table[op, key] = kernel

    def register_fallback(self, key: str, kernel: Any) -> None:
        self.table[None, key] = kernel

    def after(self, key: str) -> set[str]:
        return {one for one in self.order if self.order.index(one) > self.order.index(key)}

    def including(self, keys: Collection[str]) -> Any:
        return self._changed("included", keys)

    def excluding(self, keys: Collection[str]) -> Any:
        return self._changed("excluded", keys)

    @contextmanager
    def _changed(self, kind: str, keys: Collection[str]) -> Iterator[None]:
        changes = self.changes.setdefault(threading.get_ident(), [])
        changes.append((kind, set(keys)))
        try:
            yield
        finally:
            changes.pop()

    def _set(self, kind: str) -> set[str]:
        changes = self.changes.get(threading.get_ident(), [])
        return {key for one, keys in changes if one == kind for key in keys}

    def call(self, op: str, *args: Any, **kwargs: Any) -> Any:
        found: set[str] = set()
        for value in (*args, *kwargs.values()):
            several = value if isinstance(value, list | tuple) else (value,)
            found.update(*(keys_of(one) for one in several if isinstance(one, torch.Tensor)))
        wanted = (found | self._set("included")) - self._set("excluded")
        real = {key for key in wanted if self._entry(op, key) != "fallthrough"}
        return self.redispatch(op, real, *args, **kwargs)

    def redispatch(self, op: str, keys: Collection[str], *args: Any, **kwargs: Any) -> Any:
        for key in self.order:
            if key in keys:
                entry = self._entry(op, key)
                if entry == "fallthrough":
                    raise RuntimeError
                if entry is None:
                    raise NotImplementedError
                run: Callable[..., Any] = entry
                extra = () if (op, key) in self.table else (op,)
                return run(set(keys), *extra, *args, **kwargs)
        raise NotImplementedError

    def _entry(self, op: str, key: str) -> Any:
        return self.table.get((op, key), self.table.get((None, key)))
