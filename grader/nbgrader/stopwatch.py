"""How long a submission's code is waited for: what a class report calls slow, and when it is enough."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from grader.evidence.wire.channel import Transport
from grader.inside.process.budget import Budget

OpenFor = Callable[[str, Budget], Transport]
"""Opens the transport for a grade cell's exercise, under a budget."""


class Stopwatch:
    """Opens transports, and adds up how long their replies were waited for: seconds on the clock."""

    def __init__(self, open_for: OpenFor) -> None:
        self._open_for = open_for
        self.seconds = 0.0

    def open(self, grade_id: str, budget: Budget) -> Transport:
        """Return a transport whose waiting counts."""
        return _Watched(self, self._open_for(grade_id, budget))


ENOUGH = 360.0
"""Seconds that all exercises of one submission are waited for before patience is short. Right answers to
the longest chapter take a minute; on a busy machine some minutes."""

SHORT = 20.0
"""Seconds for an exercise's answers then."""


class Patience(Stopwatch):
    """Opens all transports of one submission, and waits less for its code once it has waited long.

    Code that sleeps in every exercise, each time within its limit, would else hold a class up for as
    many times that limit.
    """

    @property
    def is_short(self) -> bool:
        """Whether what is opened now is waited for less."""
        return self.seconds >= ENOUGH

    def open(self, grade_id: str, budget: Budget) -> Transport:
        """Return a transport whose waiting counts."""
        if self.is_short:
            wall, whole = min(SHORT, budget.wall_seconds), min(SHORT, budget.waiting_seconds)
            budget = replace(budget, wall_seconds=wall, waiting_seconds=whole)
        return super().open(grade_id, budget)


class _Watched:
    def __init__(self, watch: Stopwatch, inner: Transport) -> None:
        self._watch, self._inner = watch, inner

    def ask(self, request: bytes, watch: bool = False) -> bytes:
        start = time.monotonic()
        try:
            return self._inner.ask(request, watch) if watch else self._inner.ask(request)
        finally:
            self._watch.seconds += time.monotonic() - start

    def close(self) -> None:
        self._inner.close()
