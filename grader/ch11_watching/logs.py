"""Logs of `throughput`: runs that are simulated, with the times of each step beside the events."""

from __future__ import annotations

from typing import Any

import torch

from grader import draw_int

TICK = 1 / 64
"""All times are whole multiples of it, so that sums and differences are exact."""

ORDER = ("finished", "resume", "batch", "launched", "fetch", "pause")
"""How events of one time follow each other."""


class Run:
    """A loop that fetches batches and hands them to a device, on a clock that only it moves."""

    def __init__(self) -> None:
        self.now = 0
        self.events: list[tuple[Any, ...]] = []
        self.pauses: list[tuple[int, int]] = []
        self.fetches: list[int] = []
        self.batches: list[int] = []
        self.finishes: list[int] = []
        self.sizes: list[int] = []

    def step(self, size: int, wait: int, launch: int, work: int, *, synchronous: bool) -> None:
        """Fetch a batch in `wait` ticks, hand it over in `launch`; the device works for `work`."""
        self.fetches.append(self.now)
        self.events.append(("fetch", self.now))
        self.now += wait
        self.batches.append(self.now)
        self.sizes.append(size)
        self.events.append(("batch", self.now, size))
        begins = max([self.now, *self.finishes[-1:]])
        self.now += launch
        self.events.append(("launched", self.now))
        self.finishes.append(max(begins + work, self.now))
        self.events.append(("finished", self.finishes[-1]))
        if synchronous:
            self.synchronize()

    def synchronize(self) -> None:
        """Wait for the device."""
        self.now = max([self.now, *self.finishes[-1:]])

    def pause(self, ticks: int) -> None:
        """Evaluate for some ticks, the device being at rest."""
        self.synchronize()
        self.events.append(("pause", self.now))
        self.now += ticks
        self.pauses.append((self.events[-1][1], self.now))
        self.events.append(("resume", self.now))

    def log(self, until: int | None = None) -> list[tuple[Any, ...]]:
        """Return the events up to a time, in their order; times in seconds."""
        ordered = sorted(self.events, key=lambda event: (event[1], ORDER.index(event[0])))
        return [
            (kind, at * TICK, *rest) for kind, at, *rest in ordered if until is None or at <= until
        ]

    def truth(self, warmup: int, until: int | None = None) -> tuple[float, float]:
        """Return (samples per second, starved share), computed from intervals."""
        done = [k for k, at in enumerate(self.finishes) if until is None or at <= until]
        end = self.finishes[done[-1]]
        start = self.finishes[warmup - 1] if warmup else self.events[0][1]
        within = [max(0, min(b, end) - max(a, start)) for a, b in self.pauses]
        starved = 0
        for k, (fetch, batch) in enumerate(zip(self.fetches, self.batches, strict=True)):
            idle = max([fetch, start, *self.finishes[max(k - 1, 0) : k]])
            starved += max(0, min(batch, end) - idle)
        seconds = (end - start - sum(within)) * TICK
        samples = sum(self.sizes[k] for k in done[warmup:])
        return samples / seconds, starved * TICK / seconds


def simulated(
    rng: torch.Generator,
    steps: int,
    *,
    synchronous: bool = True,
    equal: bool = False,
    pauses: int = 0,
    wait: tuple[int, int] = (1, 40),
    work: tuple[int, int] = (20, 90),
) -> Run:
    """Return a run of some steps; with `pauses`, one after every so many."""
    run = Run()
    run.now = draw_int(rng, 0, 500)
    for number in range(1, steps + 1):
        size = 32 if equal else draw_int(rng, 1, 64)
        times = draw_int(rng, *wait), draw_int(rng, 1, 9), draw_int(rng, *work)
        run.step(size, *times, synchronous=synchronous)
        run.now += draw_int(rng, 0, 30)  # the loop writes its log, and the device may be idle
        if pauses and number % pauses == 0:
            run.pause(draw_int(rng, 50, 300))
            run.now += draw_int(rng, 5, 30)
    return run
