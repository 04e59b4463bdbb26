"""Real workers of torch's DataLoader, made to finish in the order of a golden run.

The clock of a golden run is a model; its order and counts are claims about torch. Here torch forks
its workers, and each waits at a gate before it hands over a batch. The main process opens the gates
in the golden order, and where it would block on an empty result queue it first opens the next ones.
Nothing sleeps and nothing is measured, so the log is the same each time.
"""

from __future__ import annotations

import multiprocessing.context
import os
import queue
import warnings
from dataclasses import dataclass, field
from multiprocessing.reduction import ForkingPickler
from typing import Any

from torch.utils.data import get_worker_info

from grader.inside.instruments.events import Events, watch_events
from tests.explorers.golden_dataloader import Event, Knobs

PATIENCE = 300  # seconds for what takes milliseconds


@dataclass
class Real:
    """What a real epoch left behind."""

    log: list[tuple[str, int, int]]  # kind, batch, worker; in the order in which it happened
    starts: dict[int, list[int]]  # worker → the batches that it began, in its order
    counts: list[tuple[int, int]]  # outstanding and put aside, at each delivery
    loaded: dict[int, list[int]]  # process → the samples that it loaded, in its order
    collated: set[tuple[int, tuple[int, ...]]]  # process and samples of each call
    main: int  # the main process
    pids: list[int]  # of the workers
    exits: list[int | None]  # of the workers


@dataclass
class _Stage:
    """The gates, the golden events still to come, and the log of all processes."""

    context: multiprocessing.context.ForkContext
    events: Events
    coming: list[Event]
    workers: int
    open: list[Any] = field(init=False)
    through: Any = field(init=False)

    def __post_init__(self) -> None:
        self.open = [self.context.Semaphore(0) for _ in range(self.workers)]
        self.through = self.context.Semaphore(0)

    def play_to(self, kind: str) -> None:
        """Let workers finish as the golden run has it, up to and with its next event of this kind."""
        while self.coming and (event := self.coming.pop(0)).kind != kind:
            if event.kind == "finish" and self.open:
                self.open[event.worker].release()
                assert self.through.acquire(timeout=PATIENCE), f"nobody finishes {event}"


class _Pipe:
    """A queue without a feeder thread: what was put is there when `put` returns."""

    def __init__(self, stage: _Stage, worker: int | None) -> None:
        self.stage, self.worker = stage, worker
        self.reader, self.writer = stage.context.Pipe(duplex=False)
        self.reading, self.writing = stage.context.Lock(), stage.context.Lock()

    def put(self, message: Any) -> None:
        if self.worker is not None and message is not None:
            self.stage.events.note("give", message[0], self.worker)
        with self.writing:
            info = get_worker_info()
            if self.worker is None and info is not None:
                self.stage.events.note("finish", message[0], info.id)
            self.writer.send_bytes(ForkingPickler.dumps(message))
            if self.worker is None:
                self.stage.through.release()

    def get(self, timeout: float) -> Any:
        if self.worker is None:
            self.stage.play_to("take")
        with self.reading:
            if not self.reader.poll(timeout):
                raise queue.Empty
            message = ForkingPickler.loads(self.reader.recv_bytes())
        if self.worker is None:
            self.stage.events.note("take", message[0], -1)
        elif message is not None:
            self.stage.events.note("start", message[0], self.worker)
        return message

    def cancel_join_thread(self) -> None:
        """There is no thread."""

    close = cancel_join_thread


class _Context(multiprocessing.context.ForkContext):
    """Fork as it is, with such queues: the first carries results, then one a worker."""

    def __init__(self, stage: _Stage) -> None:
        self.stage = stage
        self.made = 0

    def Queue(self, maxsize: int = 0) -> Any:
        self.made += 1
        return _Pipe(self.stage, None if self.made == 1 else self.made - 2)


class _Samples:
    def __init__(self, stage: _Stage, length: int) -> None:
        self.stage, self.length = stage, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        self.stage.events.note("load", index)
        return index

    def collate(self, samples: list[int]) -> list[int]:
        """Collate, and wait until the golden run has this worker finish."""
        self.stage.events.note("collate", *samples)
        info = get_worker_info()
        if info is not None and not self.stage.open[info.id].acquire(timeout=PATIENCE):
            raise TimeoutError(f"worker {info.id} was never let through with {samples}")
        return samples


def run(knobs: Knobs, golden: list[Event]) -> Real:
    """Run one epoch with forked workers that finish in the order of `golden`."""
    context = multiprocessing.get_context("fork")
    with watch_events() as events:
        stage = _Stage(context, events, list(golden), knobs.num_workers)
        samples = _Samples(stage, knobs.samples)
        options: dict[str, Any] = {"collate_fn": samples.collate}
        if knobs.num_workers:
            options.update(multiprocessing_context=_Context(stage), timeout=PATIENCE)
        loader = knobs.loader(samples, **options)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "This DataLoader will create")
            iterator: Any = iter(loader)
        counts, batches = [], []
        try:
            stage.play_to("ask")
            events.note("ask", -1, -1)
            for batch in iterator:
                batches.append(batch)
                events.note("deliver", batch[0] // knobs.batch_size, -1)
                counts.append(_counts(iterator))
                stage.play_to("ask")
                events.note("ask", -1, -1)
            events.note("stop", -1, -1)
        finally:
            workers = _end(iterator)
        return _told(events.read(), counts, workers)


def _counts(iterator: Any) -> tuple[int, int]:
    info = getattr(iterator, "_task_info", {})
    return getattr(iterator, "_tasks_outstanding", 0), sum(len(i) == 2 for i in info.values())


def _end(iterator: Any) -> list[Any]:
    if not hasattr(iterator, "_workers"):
        return []
    iterator._shutdown_workers()  # nothing, where the epoch came to its end
    return list(iterator._workers)


def _told(events: list[tuple[Any, ...]], counts: list[tuple[int, int]], workers: list[Any]) -> Real:
    """Sort the one log into what is compared: starts and loads have no order among workers."""
    log: list[tuple[str, int, int]] = []
    starts: dict[int, list[int]] = {}
    loaded: dict[int, list[int]] = {}
    collated: set[tuple[int, tuple[int, ...]]] = set()
    for pid, kind, *what in events:
        if kind == "start":
            batch, worker = what
            starts.setdefault(worker, []).append(batch)
        elif kind == "load":
            loaded.setdefault(pid, []).extend(what)
        elif kind == "collate":
            collated.add((pid, tuple(what)))
        else:
            batch, worker = what
            log.append((kind, batch, worker))
    pids, exits = [w.pid for w in workers], [w.exitcode for w in workers]
    return Real(log, starts, counts, loaded, collated, os.getpid(), pids, exits)
