"""Golden runs for the dataloader explorer: torch's own loader, its workers moved into model time.

DataLoader takes a `multiprocessing_context`. The one here starts no process: its workers are
records with a clock, its queues are lists, and waiting means moving the clock to the moment at which
the next worker is done. All decisions (which worker is given which batch, what is put aside, what is
delivered) are made by torch's code; only the durations are ours. `gated_dataloader.py` holds this
against real processes.
"""

from __future__ import annotations

import multiprocessing.context
import os
import random
import types
import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

SEED = 20_13
COLLATE = 1  # units that collate takes, of the explorer's page
MOST_SAMPLES = 32


@dataclass(frozen=True)
class Knobs:
    """One setting of the explorer. Times in units; `slow` are the samples that take `late`."""

    samples: int = 24
    batch_size: int = 2
    num_workers: int = 2
    prefetch_factor: int = 2
    in_order: bool = True
    drop_last: bool = False
    load: int = 2
    late: int = 20
    slow: tuple[int, ...] = ()
    work: int = 4

    def loading(self, indices: list[int]) -> int:
        """Return how long a worker needs for these samples and their collate."""
        return COLLATE + sum(self.late if i in self.slow else self.load for i in indices)

    def loader(self, dataset: Any, **options: Any) -> DataLoader[Any]:
        """Return torch's loader with these settings."""
        if self.num_workers:
            options["prefetch_factor"] = self.prefetch_factor
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "This DataLoader will create")  # more than cores
            return DataLoader(
                dataset,
                batch_size=self.batch_size,
                num_workers=self.num_workers,
                in_order=self.in_order,
                drop_last=self.drop_last,
                **options,
            )


@dataclass(frozen=True)
class Event:
    """What happened when, to which batch and worker (−1: none), and torch's own counts just after.

    `outstanding` is `_tasks_outstanding`: given out and not yet taken from the result queue. `aside`
    are batches in `_task_info` with their data: taken, but not yet their turn.
    """

    time: int
    kind: str
    batch: int
    worker: int
    outstanding: int
    aside: int


@dataclass
class _Worker:
    index: int
    tasks: deque[tuple[int, list[int]]] = field(default_factory=deque)
    batch: int | None = None
    until: int = 0


@dataclass
class _World:
    """The clock, the workers, what lies in the result queue, and the log."""

    knobs: Knobs
    workers: list[_Worker] = field(default_factory=list)
    results: deque[int] = field(default_factory=deque)
    now: int = 0
    iterator: Any = None
    log: list[tuple[int, str, int, int]] = field(default_factory=list)
    counts: list[tuple[int, int]] = field(default_factory=list)

    def note(self, kind: str, batch: int = -1, worker: int = -1) -> None:
        """Log an event, after the workers that have something to begin have begun."""
        self.begin()
        self._log(kind, batch, worker)

    def begin(self) -> None:
        """Let every idle worker take the first of its index queue."""
        for worker in self.workers:
            if worker.batch is None and worker.tasks:
                worker.batch, indices = worker.tasks.popleft()
                worker.until = self.now + self.knobs.loading(indices)
                self._log("start", worker.batch, worker.index)

    def pass_until(self, time: int | None = None) -> None:
        """Let the workers finish what they finish by then; at one moment, worker 0 first.

        Without a time: until the first of them finishes something.
        """
        self.begin()
        if time is None:
            time = min(worker.until for worker in self.workers if worker.batch is not None)
        while due := [w for w in self.workers if w.batch is not None and w.until <= time]:
            worker = min(due, key=lambda w: (w.until, w.index))
            assert worker.batch is not None
            self.now = worker.until
            self._log("finish", worker.batch, worker.index)
            self.results.append(worker.batch)
            worker.batch = None
            self.begin()
        self.now = time

    def _log(self, kind: str, batch: int, worker: int) -> None:
        self.settle()
        self.log.append((self.now, kind, batch, worker))

    def settle(self) -> None:
        """Note the counts that the last event left behind, which show only a little after it."""
        if len(self.counts) < len(self.log):
            self.counts.append(self._count())

    def _count(self) -> tuple[int, int]:
        info = getattr(self.iterator, "_task_info", None)
        if info is None:
            return 0, 0
        return self.iterator._tasks_outstanding, sum(len(held) == 2 for held in info.values())

    def events(self) -> list[Event]:
        """Return the whole log, with the counts after each event."""
        self.settle()
        return [Event(*what, *count) for what, count in zip(self.log, self.counts, strict=True)]


class _IndexQueue:
    def __init__(self, world: _World, worker: _Worker) -> None:
        self.world, self.worker = world, worker

    def put(self, task: tuple[int, list[int]] | None) -> None:
        if task is not None:  # None ends a worker
            self.world.note("give", task[0], self.worker.index)
            self.worker.tasks.append(task)

    def cancel_join_thread(self) -> None:
        """There is no thread."""

    close = cancel_join_thread


class _ResultQueue:
    def __init__(self, world: _World) -> None:
        self.world = world

    def get(self, timeout: float) -> tuple[int, str]:
        if not self.world.results:
            self.world.pass_until()
        batch = self.world.results.popleft()
        worker = self.world.iterator._task_info[batch][0]
        self.world.note("take", batch, worker)
        return batch, f"batch {batch}"


class _Context(multiprocessing.context.BaseContext):
    """The context whose processes are records: the first queue carries results, then one a worker."""

    def __init__(self, world: _World) -> None:
        self.world: _World | None = world
        self.made = 0

    def Queue(self, maxsize: int = 0) -> Any:
        assert self.world is not None
        self.made += 1
        if self.made == 1:
            return _ResultQueue(self.world)
        self.world.workers.append(_Worker(self.made - 2))
        return _IndexQueue(self.world, self.world.workers[-1])

    def Event(self) -> Any:
        state = types.SimpleNamespace(on=False)
        return types.SimpleNamespace(
            set=lambda: setattr(state, "on", True), is_set=lambda: state.on
        )

    def Process(self, **given: Any) -> Any:  # type: ignore[override]
        return types.SimpleNamespace(
            start=lambda: None, join=lambda timeout: None, is_alive=lambda: False, pid=os.getpid()
        )


class _Samples:
    """A dataset that a worker would load; where the main process does it, the clock goes on."""

    def __init__(self, world: _World) -> None:
        self.world, self.batch = world, -1

    def __len__(self) -> int:
        return self.world.knobs.samples

    def __getitems__(self, indices: list[int]) -> list[int]:
        self.batch += 1
        self.world.note("start", self.batch)
        self.world.now += self.world.knobs.loading(indices)
        return indices

    def collate(self, samples: list[int]) -> str:
        self.world.note("finish", self.batch)
        return f"batch {self.batch}"


def run(knobs: Knobs) -> list[Event]:
    """Run torch's loader for one epoch, with a consumer that works between two batches."""
    world = _World(knobs)
    samples = _Samples(world)
    if knobs.num_workers:
        loader = knobs.loader(samples, multiprocessing_context=_Context(world))
        # What `iter(loader)` does, but known to the world while the first indices are given out.
        world.iterator = object.__new__(_MultiProcessingDataLoaderIter)
        world.iterator.__init__(loader)
    else:
        world.iterator = iter(knobs.loader(samples, collate_fn=samples.collate))
    world.note("ask")
    world.settle()
    for batch in world.iterator:
        number = int(batch.split()[1])
        world.note("deliver", number, _worker_of(world, number))
        world.settle()
        world.pass_until(world.now + knobs.work)
        world.note("ask")
        world.settle()
    world.note("stop")
    return world.events()


def _worker_of(world: _World, batch: int) -> int:
    return next(worker for _, kind, b, worker in world.log if kind == "start" and b == batch)


def settings(count: int, seed: int = SEED) -> Iterator[Knobs]:
    """Random settings of the page's knobs, ties and edges among them."""
    source = random.Random(seed)
    for _ in range(count):
        samples = source.randint(1, MOST_SAMPLES)
        few = source.choice([0, 0, 1, 1, 2, 4])
        yield Knobs(
            samples=samples,
            batch_size=source.choice([1, 1, 2, 2, 3, 4, 5, 8]),
            num_workers=source.randint(0, 4),
            prefetch_factor=source.randint(1, 4),
            in_order=source.random() < 0.5,
            drop_last=source.random() < 0.3,
            load=source.choice([1, 1, 2, 3, 9]),
            late=source.choice([1, 5, 12, 20, 60]),
            slow=tuple(sorted(source.sample(range(samples), min(few, samples)))),
            work=source.choice([0, 0, 1, 2, 3, 5, 8, 13, 40]),
        )
