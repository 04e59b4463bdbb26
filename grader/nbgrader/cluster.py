"""The workers of a Dask cluster, who grade for a command that alone writes to the gradebook.

Dask brings a task whose worker died to another. A task whose answer came is never given again; one
whose answer did not come, for whatever reason, left nothing behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import secrets
import select
import socket
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from concurrent.futures import Future as Answer
from pathlib import Path
from typing import Any

from distributed import Client, Future
from distributed.scheduler import KilledWorker
from tornado.platform.asyncio import BaseAsyncIOLoop

from grader.course.course import Chapter, CourseError
from grader.feedback.render import SITE
from grader.nbgrader.dask_worker import (
    Order,
    Parcel,
    differences,
    end_order,
    grade_parcel,
    identity,
    pack,
    refusal,
)
from grader.nbgrader.pool import AHEAD
from grader.nbgrader.resubmitted import files_that_count
from grader.nbgrader.run import Terms
from grader.nbgrader.worker import Died, Event, Stopped, Task

CONNECT_SECONDS = 30.0
"""How long a connection may take, at first or again after one was lost."""

ANSWER_SECONDS = 120.0
"""How long a scheduler may be silent. The first task makes it import torch, a minute on slow disks."""

LOOK_SECONDS = 1.0
"""Between two looks at which workers there are."""

LONELY_SECONDS = 60.0
"""How long we wait for a first worker, or for another when none is left."""


class Cluster:
    """The workers at a Dask scheduler's address. Raises `CourseError` if nobody answers there."""

    def __init__(
        self, address: str, chapter: Chapter, terms: Terms, released: Mapping[str, Any]
    ) -> None:
        self._address, self._chapter = address, chapter.id
        self._here = identity(chapter.id)
        try:
            self._client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise CourseError(
                f"No Dask scheduler answers at {address} ({type(error).__name__}). "
                "Start one (dask scheduler), and name the address that it prints."
            ) from None
        self._ended: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._bell, self._rope = socket.socketpair()
        self._tasks: dict[Future[Any], Task] = {}
        self._looks: dict[Future[Any], str] = {}
        self._known: set[str] = set()
        self._workers: set[str] = set()
        self._seen, self._looked = time.monotonic(), 0.0
        self._question: Answer[dict[str, int]] | None = None
        self._asked = time.monotonic()
        self._order_id = secrets.token_hex(8)
        order = Order(
            self._order_id, chapter.id, chapter.origin is not None, terms, released, pack(chapter),
            os.environ.get(SITE, ""), self._here,
        )  # fmt: skip
        # a task, not scattered data: Dask makes it anew wherever it was lost
        self._order = self._client.submit(_same, order, key=f"order-{order.id}")

    @property
    def busy(self) -> bool:
        """Is there a task without an answer?"""
        return bool(self._tasks)

    def has_room(self) -> bool:
        """Are there fewer tasks than the workers that were looked at can take?"""
        return self._connected and len(self._tasks) < AHEAD * len(self._workers & self._known)

    @property
    def _connected(self) -> bool:
        return bool(self._client.status == "running")

    def give(self, task: Task) -> None:
        """Send a submission to whoever is free."""
        key = f"grade-{task.student}-{secrets.token_hex(8)}"
        future = self._client.submit(grade_parcel, self._order, _parcel(task), key=key)
        self._tasks[future] = task
        future.add_done_callback(self._ring)

    def _ring(self, future: Future[Any]) -> None:
        """Tell the listener, from Dask's thread."""
        self._ended.put(future)
        with contextlib.suppress(OSError):  # closed by now
            self._rope.send(b"!")

    def listen(self, wake: int) -> Iterator[Event]:
        """Wait for answers, for the descriptor `wake`, or until it is time to look at workers."""
        bell = self._bell.fileno()
        ready, _, _ = select.select([wake, bell], [], [], LOOK_SECONDS)
        if bell in ready:
            self._bell.recv(4096)
        while not self._ended.empty():
            future = self._ended.get()
            if future in self._looks:
                yield from self._meet(self._looks.pop(future), future)
            elif future in self._tasks:
                event = self._answer(future)
                if event is not None:
                    yield event
        if time.monotonic() - self._looked > LOOK_SECONDS:
            yield from self._look_around()
            self._looked = time.monotonic()

    def _answer(self, future: Future[Any]) -> Event | None:
        """Return what became of a task; None if Dask, having lost the answer, does it again."""
        try:
            event: Event = future.result(timeout=CONNECT_SECONDS)
        except KilledWorker as error:
            event = Died((self._tasks[future],), error.allowed_failures + 1)
        except Exception as error:
            if _raised_by_task(future, error):
                event = Stopped(f"A Dask worker failed: {type(error).__name__}: {error}")
            elif isinstance(error, TimeoutError):
                future.add_done_callback(self._ring)
                return None
            else:
                event = Stopped(f"The Dask scheduler at {self._address} is gone")
        del self._tasks[future]
        return event

    def _look_around(self) -> Iterator[Event]:
        """See who is there. Who is new is asked for its versions first."""
        threads = self._threads()
        if threads is None:
            if not self._connected or time.monotonic() - self._asked > ANSWER_SECONDS:
                yield Stopped(f"The Dask scheduler at {self._address} does not answer")
            return
        self._workers = set(threads)
        if threads:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > LONELY_SECONDS:
            yield Stopped(
                f"No worker came to {self._address} in {LONELY_SECONDS:g} s. On each machine: "
                f"dask worker {self._address} --nworkers auto --nthreads 1"
            )
        for address in self._workers - self._known - set(self._looks.values()):
            if threads[address] != 1:
                yield Stopped(
                    f"The worker {address} has {threads[address]} threads, and judging wants one "
                    "for each worker. Start it with: --nworkers auto --nthreads 1"
                )
            key = f"identity-{secrets.token_hex(8)}"
            future = self._client.submit(identity, self._chapter, workers=[address], key=key)
            self._looks[future] = address
            future.add_done_callback(self._ring)

    def _threads(self) -> dict[str, int] | None:
        """Return each worker's number of threads, by address; None while there is no answer.

        It is not waited for: a scheduler may be busy for long, and Ctrl-C must still be heard.
        """
        if self._question is None:
            loop, scheduler = self._client.loop, self._client.scheduler
            if not isinstance(loop, BaseAsyncIOLoop) or scheduler is None:
                return None  # closed, or not connected yet
            self._question = asyncio.run_coroutine_threadsafe(scheduler.ncores(), loop.asyncio_loop)
            self._asked = time.monotonic()
        if not self._question.done():
            return None
        question, self._question = self._question, None
        try:
            return dict(question.result())
        except (OSError, CancelledError):
            return None

    def _meet(self, address: str, future: Future[Any]) -> Iterator[Event]:
        """Take a worker in, or refuse it and say why."""
        try:
            other = differences(self._here, future.result(timeout=CONNECT_SECONDS))
        except Exception as error:
            if isinstance(error, KilledWorker) or not _raised_by_task(future, error):
                return  # it left; whoever comes in its place is asked again
            other = f"no Undertorch that answers ({type(error).__name__}: {error})"
        if other:
            yield refusal(address, other)
        else:
            self._known.add(address)

    def close(self) -> None:
        """Leave; who leaves takes its tasks back. End the boxes, unless somebody still grades."""
        with contextlib.suppress(Exception):  # the scheduler may be gone; there is nothing to save
            if self._connected and not self.busy:
                self._client.run(end_order, self._order_id, on_error="ignore")
        with contextlib.suppress(Exception):
            self._client.close(timeout=CONNECT_SECONDS)
        self._bell.close()
        self._rope.close()


def _raised_by_task(future: Future[Any], error: Exception) -> bool:
    """Did a task raise `error`, or did the way to Dask end while its result was asked for?"""
    return future.status == "error" or not isinstance(error, (OSError, CancelledError))


def _same(order: Order) -> Order:
    return order


def _parcel(task: Task) -> Parcel:
    """Read what grading reads in a submission's folder. What is no plain file stays here."""
    files = files_that_count(task.notebook.parent)
    return Parcel(Task(task.student, Path(task.notebook.name), task.notes, task.refused), files)
