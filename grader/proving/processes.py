"""Processes that prove: young ones, and none that outlives who began it."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from concurrent.futures import ProcessPoolExecutor

from grader.inside.process import syscalls


def spawned(jobs: int, tasks: int | None = None) -> ProcessPoolExecutor:
    """Return a pool of `jobs` processes, each for at most so many `tasks`.

    Its thread must live as long as the pool: where that ends, or is killed, they end.
    """
    # a fork would take torch's threads for its own
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs, spawn, _end_with_parent, max_tasks_per_child=tasks)


def _end_with_parent() -> None:
    if sys.platform == "linux":
        syscalls.die_with_parent(signal.SIGKILL)
