"""How long to wait for forks: time in which they stood in line for a processor does not count.

A limit on the clock alone would make a right program hang on a machine with much to do.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Collection, Iterator
from pathlib import Path

MOST = 3.0
"""How many times the limit may be added for standing in line: even a starved machine gets an end."""

_LOOK_EVERY = 0.2


class Patience:
    """A limit of `seconds`, from now on, for the process groups `groups`."""

    def __init__(self, seconds: float, groups: Collection[int]) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._groups = frozenset(groups)

    @property
    def deadline(self) -> float:
        """When it ends, by `time.monotonic`, as far as can be said now."""
        stood = max(_stood_in_line(self._groups), default=0.0)
        return self._end + min(stood, MOST * self._seconds)

    def shorten(self, seconds: float) -> None:
        """Let it end `seconds` from now, unless it ends sooner."""
        self._end = min(self._end, time.monotonic() + seconds)

    def wait(self, sockets: Collection[socket.socket]) -> list[socket.socket]:
        """Return those of the sockets that can be read, as soon as there are any; none at the end."""
        while (left := self.deadline - time.monotonic()) > 0:
            ready, _, _ = select.select(list(sockets), [], [], min(left, _LOOK_EVERY))
            if ready:
                return ready
        return []


def _stood_in_line(groups: frozenset[int]) -> Iterator[float]:
    """Yield for each process of the groups the seconds in which it could have run, and did not.

    Linux tells them (/proc/PID/schedstat); elsewhere there are none.
    """
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
            if int(stat.rpartition(")")[2].split()[2]) in groups:
                yield int((folder / "schedstat").read_text().split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            continue  # it ended meanwhile, or this system does not tell
