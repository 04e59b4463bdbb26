"""How long to wait for forks: until they hang, which is not the same as being slow.

Time in which they stood in line for a processor does not count: a limit on the clock alone would
make a right program hang on a machine with much to do. And where nothing has moved for a while,
nothing will: processes that all wait for each other need not be watched to the end of the limit.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_LOOK_EVERY = 0.2

STILL = 10
"""Looks in a row, 2 s, at which no thread has taken a step, after which processes hang. A probe that
waits for something itself looks for it more often than that (see `wait_for`)."""

POLLS = frozenset(["gloo_tcp_loop"])
"""Names of threads that look for work every few milliseconds whether or not there is some: that such a
thread came round is no step. One that stood in line all the while may yet find something."""

MOST = 3.0
"""How many times the limit may be added for standing in line: even a starved machine gets an end."""


class Patience:
    """A limit of `seconds`, from now on, for the process groups `groups`."""

    def __init__(self, seconds: float, groups: Collection[int]) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._groups = frozenset(groups)
        self._before = dict(_threads(self._groups))

    @property
    def deadline(self) -> float:
        """When it ends, by `time.monotonic`, as far as can be said now."""
        return self._deadline(dict(_threads(self._groups)))

    def shorten(self, seconds: float) -> None:
        """Let it end `seconds` from now, unless it ends sooner."""
        self._end = min(self._end, time.monotonic() + seconds)

    def wait(self, sockets: Collection[socket.socket]) -> list[socket.socket]:
        """Return those of the sockets that can be read, as soon as there are any; none at the end."""
        last: dict[int, _Steps] = {}
        still = 0
        while still < STILL:
            steps = dict(_threads(self._groups))
            left = self._deadline(steps) - time.monotonic()
            if left <= 0:
                break
            ready, _, _ = select.select(list(sockets), [], [], min(left, _LOOK_EVERY))
            if ready:
                return ready
            moved = (thread.moved_since(last.get(id)) for id, thread in steps.items())
            moving = not steps or len(steps) != len(last) or any(moved)
            still = 0 if moving else still + 1
            last = steps
        return []

    def _deadline(self, steps: dict[int, _Steps]) -> float:
        stood = max((t.stood - self._stood(id) for id, t in steps.items()), default=0.0)
        return self._end + min(stood, MOST * self._seconds)

    def _stood(self, thread: int) -> float:
        """Return how long a thread had stood in line before the limit began."""
        return self._before[thread].stood if thread in self._before else 0.0


def wait_for(descriptor: int, seconds: float) -> bool:
    """Wait until a descriptor can be read; say whether it could within `seconds`.

    To be called in a fork that someone waits for with `Patience`: it never seems to hang.
    """
    end = time.monotonic() + seconds
    while not select.select([descriptor], [], [], _LOOK_EVERY)[0]:
        if time.monotonic() > end:
            return False
    return True


def pause(seconds: float) -> None:
    """Sleep, and longer by what this process's group stood in line: others get their moment."""
    patience = Patience(seconds, [os.getpgrp()])
    while (left := patience.deadline - time.monotonic()) > 0:
        time.sleep(min(left, _LOOK_EVERY))


@dataclass(frozen=True)
class _Steps:
    """How far a thread has come: seconds that it ran, that it stood in line; whether it could run."""

    ran: float
    stood: float
    ready: bool
    polls: bool = False

    def moved_since(self, before: _Steps | None) -> bool:
        """Say whether something may have come of the thread since it was looked at `before`."""
        if before is None:
            return True
        if self.polls:
            return self.ready and self.ran == before.ran
        return self.ready or self != before


def _threads(groups: frozenset[int]) -> Iterator[tuple[int, _Steps]]:
    """Yield the threads of the process groups, by id.

    Linux tells (/proc/PID/task/TID/schedstat); elsewhere there are none.
    """
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError, ValueError):  # it ended meanwhile
            _, (_, _, group, *_) = _stat(process)
            if int(group) not in groups:
                continue
            for thread in (process / "task").iterdir():
                ran, stood, _ = (thread / "schedstat").read_text().split()
                name, (state, *_) = _stat(thread)
                steps = _Steps(int(ran) / 1e9, int(stood) / 1e9, state in "RD", name in POLLS)
                yield int(thread.name), steps


def _stat(folder: Path) -> tuple[str, list[str]]:
    """Return what /proc tells of a process or thread: its name; state, parent, group, …"""
    head, _, fields = (folder / "stat").read_text().rpartition(")")
    return head.partition("(")[2], fields.split()
