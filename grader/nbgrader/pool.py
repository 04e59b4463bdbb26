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
    """Whoever grades for the one who writes: a `Pool` here, a `Cluster` elsewhere."""

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
class WorkerProcess:
    """One worker process with the tasks it was given and has not answered, in order."""

    process: BaseProcess
    channel: Connection
    ready: bool = False
    tasks: deque[Task] = field(default_factory=deque)


class Pool:
    """`size` processes that run `serve(channel, *arguments)`; those that die are replaced.

    They are forks of this process, which must have no thread but this one: what it imported, torch
    among it, need not be imported again.
    """

    def __init__(self, size: int, serve: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._context = multiprocessing.get_context("fork")
        self._serve, self._arguments = serve, arguments
        self._workers = [self._start() for _ in range(size)]

    def _start(self) -> WorkerProcess:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=self._serve, args=(theirs, *self._arguments), daemon=True
        )
        process.start()
        theirs.close()
        return WorkerProcess(process, ours)

    def _with_room(self) -> list[WorkerProcess]:
        return [w for w in self._workers if w.ready and len(w.tasks) < AHEAD]

    def has_room(self) -> bool:
        """Is there a process that can be given a task?"""
        return bool(self._with_room())

    def give(self, task: Task) -> None:
        """Hand a task to who has the fewest. One that is dead is noticed when it is listened to."""
        worker = min(self._with_room(), key=lambda worker: len(worker.tasks))
        worker.tasks.append(task)
        with contextlib.suppress(OSError):
            worker.channel.send(task)

    @property
    def busy(self) -> bool:
        """Is there a task without an answer?"""
        return any(worker.tasks for worker in self._workers)

    def listen(self, wake: int) -> Iterator[Event]:
        """Wait for word from the processes or on the descriptor `wake`."""
        by_channel = {worker.channel: worker for worker in self._workers}
        for source in wait([*by_channel, wake]):
            if source == wake:
                continue
            worker = by_channel[source]  # type: ignore[index]
            try:
                event = worker.channel.recv()
            except (EOFError, OSError):
                yield self._replaced(worker)
                continue
            if isinstance(event, Ready):
                worker.ready = True
            elif isinstance(event, Done):
                worker.tasks.popleft()
            yield event

    def _replaced(self, worker: WorkerProcess) -> Event:
        """Start another process in place of a dead one."""
        if not worker.ready:
            return Stopped("A worker ended before it was ready. Its last words are above.")
        self._end(worker)
        self._workers[self._workers.index(worker)] = self._start()
        return Died(tuple(worker.tasks))

    def close(self) -> None:
        """End all processes, and with them their boxes."""
        for worker in self._workers:
            self._end(worker)

    def _end(self, worker: WorkerProcess) -> None:
        worker.channel.close()
        worker.process.kill()
        worker.process.join()
