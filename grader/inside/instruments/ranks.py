"""Ranks inside a probe: forks joined by gloo over the loopback interface, killed when they hang.

A wrong collective rarely raises. It waits: for a rank that never comes, for a tensor of another
shape. So every run of ranks has a limit, and a rank that hangs is evidence like any other.
"""

from __future__ import annotations

import mmap
import os
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch._C._distributed_c10d import FileStore

from grader.evidence.wire.channel import ChannelError, receive_frame
from grader.evidence.wire.codec import decode
from grader.evidence.wire.raised import Explained, Relayed
from grader.inside.instruments.apart import end_fork, start_fork
from grader.inside.instruments.collectives import Listener
from grader.inside.instruments.patience import Patience

SECONDS = 15.0
"""Longest life of the ranks: a quarter of what a box waits for one answer. Four ranks that meet and
reduce once take 0.3 s on an idle core."""

_GRACE = 0.5
"""Seconds for the other ranks to answer once one has raised. If they wait for it they never will;
if they raise too, the lowest is named whoever came first."""

_GRACE_AFTER_DEATH = 3.0
"""The same once one has died: the kernel tells the others, and what they raise says more."""

_PLACE_BYTES = 64

_LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"


class RanksHung(Explained):
    """Some ranks gave no answer in time."""


class RankDied(Explained):
    """A rank's process ended without an answer."""


@dataclass
class _Rank:
    pid: int
    socket: socket.socket
    place: mmap.mmap
    answer: dict[str, Any] | None = None
    gone: bool = False

    @property
    def open(self) -> bool:
        return self.answer is None and not self.gone

    @property
    def last(self) -> str:
        """The rank's last call to the others, "all_reduce #3"; empty before the first."""
        return self.place[:].rstrip(b"\0").decode()

    @property
    def state(self) -> str:
        """Where the rank stands, for "rank 1 …"."""
        last = self.last
        if self.answer is None:
            return f"waited at {last}" if last else "had not called another rank yet"
        return f"had left after {last}" if last else "had left without a call"


def on_ranks(
    world_size: int, body: Callable[[int], object], *, seconds: float = SECONDS
) -> list[Any]:
    """Run `body(rank)` in `world_size` forks with a gloo process group; return the results by rank.

    What `body` returns must be plain data (see `grader.evidence.wire.codec`). Each rank has the memory of
    the caller at the time of the call, and the same random state. A rank that has answered stays
    until all have, so that one which waits for it hangs instead of hearing of a closed connection.

    Raises what the lowest rank that raised had raised (as `Relayed`), `RankDied`, or `RanksHung`
    if some gave no answer within `seconds` (see `Patience`); it says where each stood: "rank 1 waited
    at all_reduce #3, rank 0 had left after all_reduce #2". Where all that is raised is that a connection
    broke, it is raised as a `RankDied` that names who ended. No rank is left when it returns. POSIX only.
    """
    ranks: list[_Rank] = []
    with tempfile.TemporaryDirectory(prefix="ranks-") as folder:
        try:
            for rank in range(world_size):
                ranks.append(_start(rank, world_size, body, Path(folder, "store"), seconds))
            _wait(ranks, Patience(seconds, [rank.pid for rank in ranks]))
        finally:
            _end(ranks)
    return _results(ranks)


def _start(
    rank: int, world_size: int, body: Callable[[int], object], store: Path, seconds: float
) -> _Rank:
    place = mmap.mmap(-1, _PLACE_BYTES)  # shared with the fork

    def joined() -> object:
        os.environ["GLOO_SOCKET_IFNAME"] = _LOOPBACK  # where the machine's name leads nowhere
        with _group(rank, world_size, store, seconds), _telling(place):
            return body(rank)

    pid, answers = start_fork(joined)
    return _Rank(pid, answers, place)


@contextmanager
def _group(rank: int, world_size: int, store: Path, seconds: float) -> Iterator[None]:
    """The default process group, with a patience beyond ours: hanging is for the parent to see."""
    dist.init_process_group(
        "gloo",
        store=FileStore(str(store), world_size),
        rank=rank,
        world_size=world_size,
        timeout=timedelta(seconds=2 * seconds + 10),
    )
    yield
    # not destroyed: that would wait for ranks that never come, and the process ends anyway


@contextmanager
def _telling(place: mmap.mmap) -> Iterator[None]:
    """Write each call to the other ranks into `place` as it is made: "all_reduce #3"."""
    calls: Counter[str] = Counter()

    def tell(name: str, _: int) -> None:
        calls[name] += 1
        place[:] = f"{name} #{calls[name]}".encode().ljust(_PLACE_BYTES, b"\0")

    with Listener(tell):
        yield


def _wait(ranks: list[_Rank], patience: Patience) -> None:
    while waiting := {rank.socket: rank for rank in ranks if rank.open}:
        ready = patience.wait(waiting)
        if not ready:
            return
        for sock in ready:
            try:
                waiting[sock].answer = decode(receive_frame(sock, patience.deadline))
            except ChannelError:
                waiting[sock].gone = True
        if any(rank.answer and rank.answer["raised"] for rank in ranks):
            patience.shorten(_GRACE)
        elif any(rank.gone for rank in ranks):
            patience.shorten(_GRACE_AFTER_DEATH)


def _end(ranks: list[_Rank]) -> None:
    for rank in ranks:
        end_fork(rank.pid)
        rank.socket.close()


def _results(ranks: list[_Rank]) -> list[Any]:
    raised = [
        (number, rank.answer["raised"])
        for number, rank in enumerate(ranks)
        if rank.answer and rank.answer["raised"]
    ]
    gone = next((_ended(number, rank.last) for number, rank in enumerate(ranks) if rank.gone), "")
    for number, report in sorted(raised, key=lambda one: _lost_another(one[1])):
        words, kind = report["message"], report["type"]
        if _lost_another(report):
            words, kind = gone or f"The connection broke: {_states(ranks)}.", RankDied.__name__
        words = f"{words} (on rank {number})".lstrip()
        raise Relayed({**report, "type": kind, "message": words})
    if gone:
        raise RankDied(gone)
    if any(rank.answer is None for rank in ranks):
        raise RanksHung(f"The ranks wait for each other: {_states(ranks)}.")
    return [rank.answer["value"] for rank in ranks if rank.answer]


def _lost_another(raised: dict[str, Any]) -> bool:
    """Say whether gloo raised this because another rank's process had ended."""
    return "/gloo/" in raised["message"] and "by peer" in raised["message"]


def _ended(number: int, last: str) -> str:
    """Return the words for a rank whose process ended, `last` being its last call."""
    if not last:
        return f"The process of rank {number} ended without an answer."
    return (
        f"The process of rank {number} ended in or after {last}, without an answer. gloo ends a process"
        " to which a message comes that is longer than the tensor for it."
    )


def _states(ranks: list[_Rank]) -> str:
    """Say where each rank stood, those that gave no answer first."""
    found: dict[str, list[int]] = {}
    for number, rank in sorted(enumerate(ranks), key=lambda item: item[1].answer is not None):
        found.setdefault(rank.state, []).append(number)
    return ", ".join(f"{_named(numbers)} {state}" for state, numbers in found.items())


def _named(ranks: list[int]) -> str:
    """Return "rank 0", "ranks 0 and 1", "ranks 0, 1 and 2"."""
    *others, last = map(str, ranks)
    return f"ranks {', '.join(others)} and {last}" if others else f"rank {last}"
