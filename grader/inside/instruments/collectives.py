"""What a rank said to the others, in order: collectives, sends and receives, with their bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._ops import OpOverload

from grader.inside.dispatch import DispatchMode
from grader.inside.instruments.ops import short_name
from grader.inside.witness import Account

_CALLS = {
    "allreduce_": ("all_reduce", 0),
    "allreduce_coalesced_": ("all_reduce_coalesced", 0),
    "broadcast_": ("broadcast", 0),
    "reduce_": ("reduce", 0),
    "allgather_": ("all_gather", 1),
    "allgather_coalesced_": ("all_gather_coalesced", 1),
    "_allgather_base_": ("all_gather_into_tensor", 1),
    "reduce_scatter_": ("reduce_scatter", 1),
    "_reduce_scatter_base_": ("reduce_scatter_tensor", 1),
    "alltoall_": ("all_to_all", 1),
    "alltoall_base_": ("all_to_all_single", 1),
    "gather_": ("gather", 1),
    "scatter_": ("scatter", 0),
    "send": ("send", 0),
    "recv_": ("recv", 0),
    "recv_any_source_": ("recv", 0),
    "barrier": ("barrier", None),
    "monitored_barrier_": ("barrier", None),
    # torch.distributed._functional_collectives
    "all_reduce": ("all_reduce", 0),
    "all_gather_into_tensor": ("all_gather_into_tensor", 0),
    "reduce_scatter_tensor": ("reduce_scatter_tensor", 0),
    "all_to_all_single": ("all_to_all_single", 0),
    "broadcast": ("broadcast", 0),
}
"""By operator: the name in `torch.distributed`, and which argument holds what this rank brings."""


class Collectives:
    """What this rank has called so far."""

    def __init__(self) -> None:
        self._events: list[tuple[str, int]] = []
        self._tell: Callable[[str, int], None] = lambda name, size: None

    @property
    def events(self) -> tuple[tuple[str, int], ...]:
        """Pairs of name and bytes, in the order of the calls, notes among them with 0 bytes.

        Names are those of `torch.distributed`, without `i` and `_object`: "all_reduce", "send".
        Bytes are those of the tensors that this rank brings, or receives in a `recv`.
        """
        return tuple(self._events)

    @property
    def names(self) -> tuple[str, ...]:
        """The names alone."""
        return tuple(name for name, _ in self._events)

    def count(self, *names: str) -> int:
        """Return how many events have one of these names."""
        return sum(name in names for name in self.names)

    def bytes(self, *names: str) -> int:
        """Return the bytes of the events with one of these names."""
        return sum(size for name, size in self._events if name in names)

    def note(self, name: str) -> None:
        """Put an event of the caller's own into the order."""
        self._events.append((name, 0))
        self._tell(name, 0)


@contextmanager
def watch_collectives() -> Iterator[Collectives]:
    """Record what this thread says to other ranks inside the `with`, the calls of DDP's reducer too.

    A call stands where it was issued: whether somebody waited for it before going on is not seen.
    """
    found, account = Collectives(), Account()
    tell = found._tell = account.tell

    def hear(name: str, size: int) -> None:
        found._events.append((name, size))
        tell(name, size)

    try:
        with Listener(hear):
            yield found
    finally:
        account.close(f"{name} {size}" for name, size in found._events)


class Listener(DispatchMode):
    """Tells of each communication, before it runs: its name, its bytes."""

    def __init__(self, tell: Callable[[str, int], None]) -> None:
        super().__init__()
        self._tell = tell

    def before(self, operator: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        if operator.namespace in ("c10d", "_c10d_functional"):
            call = _CALLS.get(short_name(operator))
            if call is not None:
                name, position = call
                self._tell(name, 0 if position is None else _bytes(args[position]))


def _bytes(value: object) -> int:
    if isinstance(value, torch.Tensor):
        return value.nbytes
    if isinstance(value, list | tuple):
        return sum(_bytes(item) for item in value)
    return 0
