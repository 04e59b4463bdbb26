"""Whether a variant of an answer passes every check, found out fast: one process hears several.

What passes here is no more than a candidate. Whoever asks has it graded, in a process of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from grader.evidence.outcome import Ended
from grader.evidence.wire.channel import Transport
from grader.submission.program import Program
from grader.verdict.checks import Suite
from grader.verdict.grading import Attempt
from grader.verdict.interview import Interview

Open = Callable[[Attempt, float], Transport]
"""Starts a process for an attempt in which no reply takes longer than these seconds."""

_MOST = 25
"""Variants that one process hears, at most: each may leave something behind."""

_LONGEST = 4.0
"""Seconds for which a process hears another variant: well below what one may compute in its life."""

_LATE = 1.0
"""Seconds by which a reply may come too late: a process for each of the last variants costs more."""


@dataclass
class _Process:
    """A process, since when it runs, how long its replies may take, and how many it has heard."""

    transport: Transport
    start: float
    patience: float
    heard: int = 0


class Screen:
    """Asks processes about one variant after another, until one of them leaves a process unfit.

    `order` are the numbers of the checks, those that failed first; no variant is heard further than
    its first failure. `patience` is how long a reply may take. What is off limits is not watched
    for: to begin that takes longer than most checks.
    """

    def __init__(
        self, suite: Suite, open_: Open, seed: int, order: Sequence[int], patience: float
    ) -> None:
        self._suite = suite
        self._open = open_
        self._seed = seed
        self._order = order
        self._patience = patience
        self._process: _Process | None = None
        self._several = False

    def try_several(self, answer: Attempt, right: Attempt, left: float) -> None:
        """Let a process hear several from now on, if the right program passes after the answer.

        Where what one leaves behind disturbs the next, such as an operator that is registered, each
        needs a process of its own.
        """
        self._several = True
        first = self._order[:1]
        self._hear(answer, left, first)
        self._several = self._process is not None and self._hear(right, left, first)
        self.close()

    def passes(self, attempt: Attempt, left: float) -> bool:
        """Say whether every check passes, as far as `left` seconds tell."""
        return self._hear(attempt, left, self._order)

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.transport.close()
            self._process = None

    def _hear(self, attempt: Attempt, left: float, order: Sequence[int]) -> bool:
        process, fresh = self._process_for(attempt, left)
        interview = Interview(process.transport, (), self._seed)
        process.heard += 1
        try:
            if not fresh or not attempt.loaded:
                interview.load(_own(attempt), judged=())
            runs = self._suite.run(
                interview, self._seed, stop=lambda runs: runs[-1].error is not None, order=order
            )
        except Ended:
            self.close()
            return False
        passed = all(run.error is None for run in runs)
        unfit = interview.ended or interview.stopped or interview.tampered
        if unfit or not self._several:
            self.close()
            if interview.stopped and not fresh:  # it may be the process that is to blame
                return self._hear(attempt, left, order)
        return passed

    def _process_for(self, attempt: Attempt, left: float) -> tuple[_Process, bool]:
        """Return a process to ask about an attempt, and whether it has heard of none yet."""
        patience = max(min(self._patience, left), 0.1)
        now = time.monotonic()
        old = self._process
        fit = old is not None and old.heard < _MOST and now - old.start < _LONGEST
        if old is not None and fit and old.patience <= patience + _LATE:
            return old, False
        self.close()
        self._process = _Process(self._open(attempt, patience), now, patience)
        return self._process, True


def _own(attempt: Attempt) -> Program:
    """Return what is to be run of an attempt: of one that a kernel holds, its first part alone."""
    program = attempt.program
    return replace(program, parts=program.parts[:1]) if attempt.loaded else program
