"""Worker processes and the tasks that they hold: who is ready, who answered, who died."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from grader.nbgrader.worker import Died, Done, Event, Ready, Stopped, Task

AHEAD = 2
"""Tasks that a worker holds: the one it grades, and the next, so that it need not wait for us."""


class Workers(Protocol):
    """Whoever grades for the one who writes: a `Crew` here, a `Cluster` elsewhere."""

    @property
    def busy(self) -> bool:
        """Is there a task without an answer?"""

    def has_room(self) -> bool:
        """Can a task be given now?"""

    def give(self, task: Task) -> None:
        """Hand over a task. It is answered once, by `Done` or by `Died`."""

    def listen(self, wake: int) -> Iterator[Event]:
        """Wait for word, but not for ever, or until the descriptor `wake` can be read."""

    def close(self) -> None:
        """End all work. What was not answered is not graded."""


@dataclass
class Member:
    """One worker process with the tasks it was given and has not answered, in order."""

    process: BaseProcess
    channel: Connection
    ready: bool = False
    tasks: deque[Task] = field(default_factory=deque)


class Crew:
    """`size` processes that run `serve(channel, *arguments)`; those that die are replaced.

    They are forks of this process, which must have no thread but this one: what it imported, torch
    among it, need not be imported again.
    """

    def __init__(self, size: int, serve: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._context = multiprocessing.get_context("fork")
        self._serve, self._arguments = serve, arguments
        self._members = [self._hire() for _ in range(size)]

    def _hire(self) -> Member:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=self._serve, args=(theirs, *self._arguments), daemon=True
        )
        process.start()
        theirs.close()
        return Member(process, ours)

    def _with_room(self) -> list[Member]:
        return [m for m in self._members if m.ready and len(m.tasks) < AHEAD]

    def has_room(self) -> bool:
        """Is there a member that can be given a task?"""
        return bool(self._with_room())

    def give(self, task: Task) -> None:
        """Hand a task to who has the fewest. One that is dead is noticed when it is listened to."""
        member = min(self._with_room(), key=lambda member: len(member.tasks))
        member.tasks.append(task)
        with contextlib.suppress(OSError):
            member.channel.send(task)

    @property
    def busy(self) -> bool:
        """Is there a task without an answer?"""
        return any(member.tasks for member in self._members)

    def listen(self, wake: int) -> Iterator[Event]:
        """Wait for word from the crew or on the descriptor `wake`."""
        by_channel = {member.channel: member for member in self._members}
        for source in wait([*by_channel, wake]):
            if source == wake:
                continue
            member = by_channel[source]  # type: ignore[index]
            try:
                event = member.channel.recv()
            except (EOFError, OSError):
                yield self._replaced(member)
                continue
            if isinstance(event, Ready):
                member.ready = True
            elif isinstance(event, Done):
                member.tasks.popleft()
            yield event

    def _replaced(self, member: Member) -> Event:
        """Bury a dead member and hire another."""
        if not member.ready:
            return Stopped("A worker ended before it was ready. Its last words are above.")
        self._end(member)
        self._members[self._members.index(member)] = self._hire()
        return Died(tuple(member.tasks))

    def close(self) -> None:
        """End everyone, and with them their boxes."""
        for member in self._members:
            self._end(member)

    def _end(self, member: Member) -> None:
        member.channel.close()
        member.process.kill()
        member.process.join()
