"""Prints what a child of the box costs: open, ask a trivial thing, close; without torch and with it."""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from grader.box.box import Box

BOX = Path(__file__).parents[1] / "tests" / "box"
ROUNDS = 100


def main() -> None:
    """Time ROUNDS children for each set of imports."""
    for preload in ((), ("torch",), ("torch", "torch._dynamo")):
        start = time.perf_counter()
        with Box(BOX / "sample_probes", preload, inside=BOX / "standin.py") as box:
            started = time.perf_counter() - start
            times = sorted(_one(box) for _ in range(ROUNDS))
        median, p95 = statistics.median(times) * 1e3, times[ROUNDS * 95 // 100] * 1e3
        name = ", ".join(preload) or "nothing"
        sys.stdout.write(
            f"{name:22} box {started:5.2f} s   child: median {median:5.1f} ms, p95 {p95:5.1f} ms, "
            f"best {times[0] * 1e3:5.1f} ms\n"
        )


def _one(box: Box) -> float:
    start = time.perf_counter()
    with box.open() as child:
        child.ask(b"result = 1")
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
