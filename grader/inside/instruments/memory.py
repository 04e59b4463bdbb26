"""How many bytes of storage a piece of code allocated, and how many of them were alive at once."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves

from grader.inside.dispatch import DispatchMode
from grader.inside.witness import Account

_TELLING = 1.0
"""Longest wait, in seconds, for another thread to have told what it noted. It takes microseconds, and
for ever where an interrupt ended that thread's call."""


class Memory:
    """What was allocated so far. All numbers are bytes of storage, each storage counted once."""

    def __init__(self) -> None:
        self._account = Account()
        self._told: list[_Change] = []
        self._waiting: deque[_Change] = deque()
        self._telling = threading.Lock()

    @property
    def new_bytes(self) -> int:
        """Bytes of all storages that came into being."""
        return sum(by for by, _ in self._changes() if by > 0)

    @property
    def live_bytes(self) -> int:
        """Bytes of those that are still alive."""
        return sum(by for by, _ in self._changes())

    @property
    def peak_bytes(self) -> int:
        """The most of them that were alive at the same time, since the last `reset_peak` if there was one."""
        live = peak = 0
        for by, size in self._changes():
            live += by
            peak = live if (by, size) == _RESET else max(peak, live)
        return peak

    @property
    def largest_bytes(self) -> int:
        """The largest of them."""
        return max((size for _, size in self._changes()), default=0)

    def reset_peak(self) -> None:
        """Let the peak be what is alive now."""
        self._note(_RESET)

    def _changes(self) -> list[_Change]:
        return [*self._told, *self._waiting]

    def _note(self, change: _Change) -> None:
        """Note a change and tell it, both in one order.

        A storage dies in whatever thread lets go of it, gloo's too, or in a collection of garbage within
        this very call. Who cannot tell now leaves it to who does.
        """
        self._waiting.append(change)
        while self._waiting and self._telling.acquire(blocking=False):
            try:
                while self._waiting:
                    first = self._waiting.popleft()
                    self._told.append(first)
                    self._account.tell(*first)
            finally:
                self._telling.release()

    def _close(self) -> None:
        # for good: what another thread notes from now on comes too late
        self._telling.acquire(timeout=_TELLING)
        self._account.close(f"{by} {size}" for by, size in self._told)


_Change = tuple[int, int]
"""By how many bytes more are alive than before, and the size of the storage that grew, else 0."""

_RESET: _Change = (0, 0)


@contextmanager
def watch_memory(*, meta: bool = True) -> Iterator[Memory]:
    """Measure the storages that operators make inside the `with`.

    Storages that were there before do not count, however many new tensors view them. Of a storage
    that grows (`resize_`, `out=`) what it gained counts, and what it gives back is no longer alive:
    storages are weighed at each operator and at the end. Not seen: scratch memory that a kernel
    frees before it returns, memory of numpy or Python objects, other threads.

    meta: whether tensors of the meta device count, with the bytes that they say they have
    """
    memory = Memory()
    scales = _Scales(memory, meta)
    try:
        with scales:
            yield memory
        scales.weigh()
    finally:
        scales.forget()
        memory._close()


class _Scales(DispatchMode):
    """Weighs, at each operator, all storages that any operator was given or returned so far.

    All, because a storage may be emptied and filled again by `resize_`, which is no operator: sharded
    training does so. A storage's Python object lives as long as its memory does, and is the same one
    each time: when it goes, the bytes are gone.
    """

    def __init__(self, memory: Memory, meta: bool) -> None:
        super().__init__()
        self._memory = memory
        self._meta = meta
        self._followed: dict[int, _Followed] = {}

    def before(self, operator: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        # `lift_fresh` is how a tensor made from Python data first shows itself: it is its own input
        if operator is not torch.ops.aten.lift_fresh.default:
            for storage in self._storages((args, kwargs)):
                self._follow(storage, storage.nbytes())
        self.weigh()

    def after(
        self, operator: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        for storage in self._storages((args, kwargs, result)):
            self._follow(storage, 0)
        self.weigh()

    def _follow(self, storage: torch.UntypedStorage, size: int) -> None:
        """Follow a storage until its end. What it held before we saw it never counts."""
        key = storage._cdata
        if key not in self._followed:
            gone = weakref.ref(storage, lambda _: self._gone(key))
            self._followed[key] = _Followed(gone, size, size)

    def weigh(self) -> None:
        """See which storages have another size than before."""
        for followed in list(self._followed.values()):
            storage = followed.storage()
            if storage is not None and (size := storage.nbytes()) != followed.size:
                self._changed(followed, size)

    def _changed(self, followed: _Followed, size: int) -> None:
        counted, followed.size = followed.size - followed.before, size
        followed.before = min(followed.before, size)  # what was given back is new if it comes again
        gained = size - followed.before - counted
        if gained:
            self._memory._note((gained, size if gained > 0 else 0))

    def _gone(self, key: int) -> None:
        followed = self._followed.pop(key, None)
        if followed is not None and followed.size > followed.before:
            self._memory._note((followed.before - followed.size, 0))

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
        self._followed.clear()


@dataclass
class _Followed:
    """A storage, its bytes when it was last weighed, and those of them that were there before us."""

    storage: weakref.ref[torch.UntypedStorage]
    size: int
    before: int
