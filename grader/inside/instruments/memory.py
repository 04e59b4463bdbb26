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
        self.new_bytes = 0
        """Bytes of all storages that came into being."""
        self.live_bytes = 0
        """Bytes of those that are still alive."""
        self.peak_bytes = 0
        """The most of them that were alive at the same time."""
        self.largest_bytes = 0
        """The largest of them."""

        self._account = Account()
        self._told: list[str] = []
        self._waiting: deque[str] = deque()
        self._telling = threading.Lock()

    def _grow(self, size: int, by: int) -> None:
        self._note(f"{by} of {size}")
        self.new_bytes += by
        self.live_bytes += by
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        self.largest_bytes = max(self.largest_bytes, size)

    def _shrink(self, by: int) -> None:
        if by:
            self._note(f"-{by}")
        self.live_bytes -= by

    def _note(self, what: str) -> None:
        """Note a change and tell it, both in one order.

        A storage dies in whatever thread lets go of it, gloo's too, or in a collection of garbage within
        this very call. Who cannot tell now leaves it to who does.
        """
        self._waiting.append(what)
        while self._waiting and self._telling.acquire(blocking=False):
            try:
                while self._waiting:
                    first = self._waiting.popleft()
                    self._told.append(first)
                    self._account.tell(first)
            finally:
                self._telling.release()

    def _close(self) -> None:
        # for good: what another thread notes from now on comes too late
        self._telling.acquire(timeout=_TELLING)
        self._account.close(self._told)


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
        super().__init__()  # type: ignore[no-untyped-call]
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
        if gained > 0:
            self._memory._grow(size, gained)
        else:
            self._memory._shrink(-gained)

    def _gone(self, key: int) -> None:
        followed = self._followed.pop(key, None)
        if followed is not None:
            self._memory._shrink(followed.size - followed.before)

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
