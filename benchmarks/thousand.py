"""A thousand submissions: does grading slow down, does memory grow, what does a second job bring?"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from course import each, make, moments, row, start
from stock import forget

STUDENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
COMMAND = ("undertorch", "grade", "five")


def main() -> None:
    """Grade the class with two jobs and look; then parts of it with one and two in turn."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make(root, True, STUDENTS)
        process = start(root, *COMMAND, "--jobs=2")
        watch = _Memory(process)
        found = moments(root, watch, STUDENTS)  # type: ignore[arg-type]
        tenth = STUDENTS // 10
        first, last = each(found[:tenth]), each(found[-tenth:])
        row("", "first tenth", "last tenth", "ratio")
        row("seconds per submission", first.clock, last.clock, last.clock / first.clock)
        row("core seconds", first.processor, last.processor, last.processor / first.processor)
        for name, sizes in watch.sizes.items():
            part = len(sizes) // 10
            early, late = (sum(s) / len(s) / 2**20 for s in (sizes[part : 2 * part], sizes[-part:]))
            row(f"MiB of the {name}", early, late, late / early)
    speedup()


def speedup() -> None:
    """Compare one job with two, in turn, and beside it what two spinning processes get here."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make(root, True, 60)
        speeds: dict[int, list[float]] = {1: [], 2: []}
        spins: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(3):
            for jobs, found in speeds.items():
                forget(root)
                process = start(root, *COMMAND, f"--jobs={jobs}")
                found.append(each(moments(root, process, 60)).clock)
                spins[jobs].append(_spin(jobs))
        row("", "one job", "two jobs", "speedup")
        for title, found in (("seconds per submission", speeds), ("the machine: spinning", spins)):
            one, two = (sorted(times)[1] for times in found.values())
            row(title, one, two, one / two)


def _spin(jobs: int) -> float:
    """Return seconds per turn when `jobs` processes only count; a busy machine shows here."""
    source = "for _ in range(60_000_000): pass"
    begin = time.perf_counter()
    processes = [subprocess.Popen([sys.executable, "-c", source]) for _ in range(jobs)]
    for process in processes:
        process.wait()
    return (time.perf_counter() - begin) / jobs


class _Memory:
    """A process that is asked how it is; each time the memory of it and its workers is noted."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.args = process.args
        self.sizes: dict[str, list[int]] = {"writer": [], "worker": []}
        self._next = time.monotonic() + 10

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    def poll(self) -> int | None:
        if time.monotonic() > self._next:
            self._next = time.monotonic() + 0.5
            try:
                writer = psutil.Process(self._process.pid)
                workers = [p for p in writer.children() if "bwrap" not in p.name()]
                self.sizes["writer"].append(writer.memory_info().rss)
                self.sizes["worker"].append(max(p.memory_info().rss for p in workers))
            except (psutil.NoSuchProcess, ValueError):
                pass
        return self._process.poll()


if __name__ == "__main__":
    main()
