"""How many bytes of storage a piece of code allocated, and how many of them were alive at once."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Memory:
    """What was allocated so far. All numbers are bytes of storage, each storage counted once."""

    def __init__(self) -> None:
        self.new_bytes = 0
        """Bytes of all storages that came into being."""
        self.live_bytes = 0
        """Bytes of those that are still alive."""
        self.peak_bytes = 0
        """The most of them that were alive at the same time."""
        self.largest_bytes = 0
        """The largest of them."""

    def _grow(self, size: int, by: int) -> None:
        self.new_bytes += by
        self.live_bytes += by
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        self.largest_bytes = max(self.largest_bytes, size)

    def _shrink(self, by: int) -> None:
        self.live_bytes -= by


@contextmanager
def watch_memory(*, meta: bool = True) -> Iterator[Memory]:
    """Measure the storages that operators make inside the `with`.

    Storages that were there before do not count, however many new tensors view them. Of a storage
    that grows (`resize_`, `out=`) what it gained counts. Not seen: scratch memory that a kernel
    frees before it returns, memory of numpy or Python objects, other threads.

    meta: whether tensors of the meta device count, with the bytes that they say they have
    """
    memory = Memory()
    scales = _Scales(memory, meta)
    try:
        with scales:
            yield memory
    finally:
        scales.forget()


class _Scales(TorchDispatchMode):
    """Weighs what each operator returned against what it was given.

    A storage's Python object lives as long as its memory does, and is the same one each time: its
    finalizer tells when the bytes are gone.
    """

    def __init__(self, memory: Memory, meta: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._memory = memory
        self._meta = meta
        self._sizes: dict[int, int] = {}
        self._finalizers: dict[int, weakref.finalize[Any, Any]] = {}

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        # `lift_fresh` is how a tensor made from Python data first shows itself: it is its own input
        if func is not torch.ops.aten.lift_fresh.default:
            for storage in self._storages((args, kwargs)):
                self._follow(storage, storage.nbytes())
        result = func(*args, **kwargs)
        for storage in self._storages((args, kwargs, result)):
            self._follow(storage, 0)
            self._weigh(storage)
        return result

    def _follow(self, storage: torch.UntypedStorage, size_before: int) -> None:
        """Follow a storage until its end. What it held before we saw it never counts."""
        key = storage._cdata
        if key not in self._sizes:
            self._sizes[key] = size_before
            self._finalizers[key] = weakref.finalize(storage, self._gone, key, size_before)
            self._finalizers[key].atexit = False

    def _weigh(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        gained, self._sizes[key] = size - self._sizes[key], size
        if gained > 0:
            self._memory._grow(size, gained)

    def _gone(self, key: int, size_before: int) -> None:
        self._memory._shrink(max(0, self._sizes.pop(key) - size_before))
        del self._finalizers[key]

    def _storages(self, tree: object) -> Iterator[torch.UntypedStorage]:
        for leaf in tree_leaves(tree):
            if isinstance(leaf, torch.UntypedStorage):  # as `set_` takes it
                yield leaf
            elif not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided:
                continue
            elif self._meta or not leaf.is_meta:
                yield leaf.untyped_storage()

    def forget(self) -> None:
        """Follow no storage any longer."""
        for finalizer in self._finalizers.values():
            finalizer.detach()
