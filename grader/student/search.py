"""What a search for a wrong line asks: forks of this process, one for each variant of an answer."""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from typing import Any, NoReturn

from grader.evidence.wire.channel import Transport
from grader.inside import interrupts, serve
from grader.inside.probe import Probe
from grader.inside.process import syscalls
from grader.inside.process.budget import Budget
from grader.student.asking import cut_off
from grader.submission.program import Program, lines_above, lines_of
from grader.verdict.grading import Attempt
from grader.verdict.lines_run import LinesRun
from grader.verdict.locate import Aside, Lines, Subject


def in_forks(
    attempt: Attempt,
    label: str,
    with_text: Callable[[str], Attempt],
    probes: dict[str, Probe],
    budget: Budget,
) -> Subject:
    """Return the search's subject where each attempt is loaded in an empty `__main__`.

    `label` is that of the program's part that holds the answer.
    """
    text = dict(attempt.program.parts).get(label, "")

    def open_traced(attempt: Attempt, patience: float) -> tuple[Transport, Lines]:
        lines = LinesRun(f"<{label}>", len(lines_of(text)))
        return _fork(probes, budget, patience, None, lines.begin), lines

    def open_variant(attempt: Attempt, patience: float) -> Transport:
        return _fork(probes, budget, patience)

    above = lines_above(attempt.source or "", text)
    return Subject(attempt, text, with_text, open_variant, open_traced, above, True, _aside())


def in_forks_of_kernel(
    attempt: Attempt, cell: str, probes: dict[str, Probe], budget: Budget, names: dict[str, Any]
) -> Subject:
    """Return the search's subject where this kernel holds the answer, and all that it needs.

    `cell` is the text of the answer's cell as the student sees it. Of a variant only the answer's own cell is run again, in the fork.
    """
    program = attempt.program
    (label, text), *others = program.parts

    def with_text(text: str) -> Attempt:
        parts = ((label, text), *others)
        return Attempt(Program(program.exercise, parts, program.given), text, loaded=True)

    def open_variant(attempt: Attempt, patience: float) -> Transport:
        changed = attempt.program.parts[0][1]

        def prepare() -> None:
            cut_off()
            serve.run_cell(label, changed, names)

        return _fork(probes, budget, patience, names, prepare)

    def open_traced(attempt: Attempt, patience: float) -> tuple[Transport, Lines]:
        lines = LinesRun(label, len(lines_of(text)))

        def prepare() -> None:
            cut_off()
            lines.begin()

        return _fork(probes, budget, patience, names, prepare), lines

    above = lines_above(cell, text)
    return Subject(attempt, text, with_text, open_variant, open_traced, above, True, _aside())


def _aside() -> Aside | None:
    """Return what has a copy of this process answer; None where it would have no core of its own."""
    return Copy if sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1 else None


_GRACE = 1.0
"""Seconds in which a copy ends what it started, before it is killed."""


class Copy:
    """A fork of this process that says yes or no, one after another, without being asked each time.

    It runs our own code; what it starts has limits of its own and ends with it. Linux only.
    """

    def __init__(self, answers: Callable[[], Generator[bool, None, None]]) -> None:
        self._reads, writes = os.pipe()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of threads
                self._pid = os.fork()
            if self._pid == 0:
                _answer(answers, writes, mask)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(writes)

    def next(self, seconds: float) -> bool | None:
        """Return the next answer; None if there is none, or not within these seconds."""
        with interrupts.let_through():
            if not select.select([self._reads], [], [], max(seconds, 0.0))[0]:
                return None
        said = os.read(self._reads, 1)
        return said == b"1" if said else None

    def close(self) -> None:
        """End the copy, and with it all that it started."""
        os.close(self._reads)
        os.kill(self._pid, signal.SIGTERM)
        end = time.monotonic() + _GRACE
        while not os.waitpid(self._pid, os.WNOHANG)[0]:
            if time.monotonic() > end:
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
                return
            time.sleep(0.01)


def _answer(
    answers: Callable[[], Generator[bool, None, None]], writes: int, mask: set[int | signal.Signals]
) -> NoReturn:
    try:
        os.setsid()  # from here on the terminal's Ctrl-C is not for us
        syscalls.die_with_parent(signal.SIGKILL)
        interrupts.start_anew()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        gc.freeze()  # else a collection goes through all that our parent holds, and copies it
        # told to end while it cleans up, it goes on until the next answer; nobody need read of that
        sys.unraisablehook = lambda *given: None
        signal.signal(signal.SIGTERM, lambda *given: sys.exit())  # and so ends what it started
        with closing(answers()) as said:
            for yes in said:
                os.write(writes, b"1" if yes else b"0")
    finally:
        os._exit(0)


def _fork(
    probes: dict[str, Probe],
    budget: Budget,
    patience: float,
    names: dict[str, Any] | None = None,
    prepare: Callable[[], object] = lambda: None,
) -> Transport:
    from grader.box.fork import Fork  # what it needs is not everywhere

    short = replace(budget, wall_seconds=min(budget.wall_seconds, patience))
    return Fork(probes, short, names, prepare)
