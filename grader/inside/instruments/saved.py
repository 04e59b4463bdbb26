"""What autograd keeps for backward: the tensors that nodes save while a graph is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.autograd.graph import saved_tensors_hooks

from grader.inside.witness import Account

# taken before any student's code can put something else in their places
_storage_of = torch.Tensor.untyped_storage


class Saved:
    """What was saved so far. Storages that an expanded or sliced view shares count once."""

    def __init__(self) -> None:
        # The storages are kept, so that no other can get the address of one while we count.
        self._storages: list[torch.UntypedStorage] = []
        self._account = Account(sees_all=False)

    @property
    def count(self) -> int:
        """How many tensors were saved, the same one as often as it was."""
        return len(self._storages)

    @property
    def bytes(self) -> int:
        """Bytes of all storages that were saved, each once."""
        return self.bytes_without()

    def bytes_without(self, *known: torch.Tensor) -> int:
        """Return the bytes of the storages that none of `known`, such as the inputs, lives in."""
        theirs = {_storage_of(tensor).data_ptr() for tensor in known}
        found = {storage.data_ptr(): storage for storage in self._storages}
        return sum(storage.nbytes() for at, storage in found.items() if at not in theirs)

    def _note(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = _storage_of(tensor)
        self._storages.append(storage)
        self._account.tell(storage._cdata)
        # A result that its own node keeps with its history is a cycle: the graph would never go.
        return tensor if tensor.is_leaf else tensor.detach()

    def _close(self) -> None:
        self._account.close(storage._cdata for storage in self._storages)


@contextmanager
def watch_saved() -> Iterator[Saved]:
    """Watch what graphs recorded in this block save. The bytes stay allocated while `saved` lives.

        with watch_saved() as saved:
            loss = model(x).sum()
        saved.bytes

    A hook that the watched code installs itself comes first, and what it hides is not seen here:
    a checkpointed part saves its inputs at most.
    """
    saved = Saved()
    try:
        with saved_tensors_hooks(saved._note, _as_it_is):
            yield saved
    finally:
        saved._close()


def _as_it_is(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
