"""Worker processes and the tasks that they hold: who is ready, who answered, who died."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from grader.nbgrader.worker import Done, Ready, Stopped, Task

AHEAD = 2
"""Tasks that a worker holds: the one it grades, and the next, so that it need not wait for us."""

Event = Ready | Done | Stopped


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
        self.members = [self._hire() for _ in range(size)]

    def _hire(self) -> Member:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=self._serve, args=(theirs, *self._arguments), daemon=True
        )
        process.start()
        theirs.close()
        return Member(process, ours)

    def with_room(self) -> Iterator[Member]:
        """Return the members that can be given a task, those with the fewest first."""
        return iter(
            sorted(
                (m for m in self.members if m.ready and len(m.tasks) < AHEAD),
                key=lambda member: len(member.tasks),
            )
        )

    def give(self, member: Member, task: Task) -> None:
        """Hand a task to a member. One that is dead by now is noticed when it is listened to."""
        member.tasks.append(task)
        with contextlib.suppress(OSError):
            member.channel.send(task)

    @property
    def busy(self) -> bool:
        """Is there a task without an answer?"""
        return any(member.tasks for member in self.members)

    def listen(self, wake: int) -> Iterator[tuple[Member, Event | None]]:
        """Wait for word from the crew or on the descriptor `wake`; None from who died."""
        by_channel = {member.channel: member for member in self.members}
        for source in wait([*by_channel, wake]):
            if source == wake:
                continue
            member = by_channel[source]  # type: ignore[index]
            try:
                event = member.channel.recv()
            except (EOFError, OSError):
                yield member, None
                continue
            if isinstance(event, Ready):
                member.ready = True
            elif isinstance(event, Done):
                member.tasks.popleft()
            yield member, event

    def replace(self, member: Member) -> None:
        """Bury a dead member and hire another."""
        self._end(member)
        self.members[self.members.index(member)] = self._hire()

    def close(self) -> None:
        """End everyone, and with them their boxes."""
        for member in self.members:
            self._end(member)

    def _end(self, member: Member) -> None:
        member.channel.close()
        member.process.kill()
        member.process.join()
