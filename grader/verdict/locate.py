"""Which line of an answer is wrong: one where a small change makes every check pass.

Variants of the answer are asked what the answer failed, one after another and where it can be on two
cores, until the time is up. What passes is graded as the answer was, in a process of its own: a line is
named only if the whole grader gave the variant full marks, with inputs of two seeds.
The changes stand in `grader.submission.variants`; which lines are likely, the checks tell that failed
(Ochiai's coefficient over the lines that ran for their questions; Abreu et al. 2006).
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Protocol

from grader.course.answers import Role
from grader.course.reference import reference_answer
from grader.evidence.outcome import Ended, Outcome
from grader.evidence.wire.channel import Transport
from grader.inside.probe import Probe
from grader.submission.program import judged_text
from grader.submission.scan import scan
from grader.submission.variants import Variant, variants
from grader.verdict.checks import CheckRun
from grader.verdict.grading import Attempt, Clock, ExerciseGrader
from grader.verdict.interview import Evidence, Interview
from grader.verdict.screening import Open, Screen

SECONDS = 20.0
"""How long is searched, all together."""

AFTER = 2.0
"""Seconds, at most, in which another line is looked for when one was found."""

LINES = 2
"""Most lines that are named: where more would do, none of them is *the* line."""

_ANOTHER_SEED = 1
"""What is added to the seed for the second grading: a change that fits some inputs is no repair."""


class Lines(Protocol):
    """Tells which lines of the answer ran. `grader.verdict.lines_run` has one for forks."""

    def take(self) -> frozenset[int]:
        """Return the lines that ran since the last time."""


class Answers(Protocol):
    """Yes or no, one after another, from a copy of this process. `grader.student.search` makes one."""

    def next(self, seconds: float) -> bool | None:
        """Return the next one; None if there is none, or not within these seconds."""

    def close(self) -> None:
        """End the copy."""


Aside = Callable[[Callable[[], Generator[bool, None, None]]], Answers]
"""Has a copy of this process answer, on a core of its own."""


@dataclass(frozen=True)
class Subject:
    """What is looked into: an attempt and the answer's text, as Python.

    `with_text` returns the attempt with another answer: with all that this one names in other cells.
    `open` starts a process for a variant, `open_traced` one for the attempt itself, which tells what
    ran, where that can be had. `several` says that one process may hear several variants.
    """

    attempt: Attempt
    text: str
    with_text: Callable[[str], Attempt]
    open: Open
    open_traced: Callable[[Attempt, float], tuple[Transport, Lines | None]]
    above: int = 0
    """How many lines of the cell stand above the text."""
    several: bool = False
    aside: Aside | None = None


@dataclass(frozen=True)
class Found:
    """What the search came to. `variants` got full marks, each in another line.

    `tried` is how many were graded, `all_tried` whether none was left. `interrupted` says that
    somebody did not want to wait, `why` why there was nothing to search.
    """

    variants: tuple[Variant, ...] = ()
    tried: int = 0
    seconds: float = 0.0
    all_tried: bool = False
    interrupted: bool = False
    why: str = ""


Progress = Callable[[int, float], object]
"""Is told how many variants were graded, and the seconds that are left."""


def locate(
    grader: ExerciseGrader,
    subject: Subject,
    seed: int,
    *,
    seconds: float = SECONDS,
    without: Iterable[str] = (),
    progress: Progress = lambda tried, left: None,
) -> Found:
    """Look for the lines of an answer where a small change makes every check pass.

    `without` are names of known mistakes that give no hint here. An interrupt ends the search with
    what was found.
    """
    search = _Search(grader, subject, seed, seconds, progress)
    interrupted = False
    try:
        search.run(frozenset(without))
    except KeyboardInterrupt:
        interrupted = True
    except RecursionError:
        search.why = "It is nested too deeply to be changed piece by piece."
    return Found(
        tuple(replace(one, line=one.line + subject.above) for one in _named(search.found)),
        search.tried,
        time.monotonic() - search.start,
        search.all_tried,
        interrupted,
        search.why,
    )


def _named(found: list[Variant]) -> list[Variant]:
    """Return those of the variants whose lines are named.

    What is added before a line, and changes none, could often stand elsewhere: such a line is named
    only where no other is found, and one of them.
    """
    return [one for one in found if one.part] or found[:1]


class _Search:
    """One search, with what it came to so far."""

    def __init__(
        self,
        grader: ExerciseGrader,
        subject: Subject,
        seed: int,
        seconds: float,
        progress: Progress,
    ) -> None:
        self._grader = grader
        self._subject = subject
        self._seed = seed
        self._progress = progress
        self.start = time.monotonic()
        self._end = self.start + seconds
        self.found: list[Variant] = []
        self.tried = 0
        self.all_tried = False
        self.why = ""

    def run(self, without: frozenset[str]) -> None:
        """Search until the time is up or nothing is left."""
        heard = self._hear()
        if heard is None:
            return
        right, wrong = self._known(without)
        screen = self._screen(heard, right[0])
        aside: Answers | None = None
        try:
            candidates = variants(self._subject.text, right, wrong, heard.suspicion)
            first = list(islice(candidates, 1))  # all that is made at the beginning is made once
            if first and self._subject.aside is not None:
                aside = self._subject.aside(lambda: self._of_the_other(candidates, screen))
            self._look(chain(first, candidates), screen, aside)
        finally:
            screen.close()
            if aside is not None:
                aside.close()

    def _look(self, candidates: Iterable[Variant], screen: Screen, aside: Answers | None) -> None:
        for number, variant in enumerate(candidates):
            known = any(one.line == variant.line for one in self.found)
            passes = None
            if aside is not None and number % 2:
                passes = aside.next(self._left())
            if known:
                continue
            if self._left() <= 0 or len(self.found) == LINES:
                return
            self._progress(self.tried, self._left())
            self.tried += 1
            if passes is None:
                passes = self._passes(variant, screen)
            if passes and self._has_full_marks(variant):
                if not self.found:
                    self._end = min(self._end, time.monotonic() + AFTER)
                self.found.append(variant)
        self.all_tried = True

    def _of_the_other(
        self, candidates: Iterable[Variant], screen: Screen
    ) -> Generator[bool, None, None]:
        """Yield of every second variant whether it passes: what a copy of this process does."""
        try:
            for number, variant in enumerate(candidates):
                if number % 2 == 0:
                    yield self._passes(variant, screen)
        finally:
            screen.close()

    def _left(self) -> float:
        return self._end - time.monotonic()

    def _known(self, without: frozenset[str]) -> tuple[list[str], list[tuple[str, str]]]:
        """Return the right programs that are known, and the mistakes with what they are edits of."""
        grader = self._grader
        reference = reference_answer(grader.chapter, grader.exercise)
        answers = [answer for answer in grader.answers if answer.name not in without]
        right = [one.source for one in answers if one.role is Role.ALTERNATE]
        wrong = [(one.source, reference) for one in answers if one.role is Role.MISTAKE]
        return [reference, *right], wrong

    def _hear(self) -> _Heard | None:
        """Ask the answer itself: which checks fail, how long each takes, which lines ran."""
        attempt = self._subject.attempt
        broken = scan(judged_text(attempt.program), self._grader.exercise.off_limits)
        if broken:
            self.why = "It uses what is off limits, and the verdict quotes the line."
            return None
        transport, lines = self._subject.open_traced(attempt, max(self._left() / 4, 0.1))
        interview = _Traced(transport, lines, self._grader, self._seed)
        times: list[float] = []
        before = time.monotonic()

        def timed(runs: Sequence[CheckRun]) -> bool:
            nonlocal before
            times.append(time.monotonic() - before)
            interview.note(runs[-1])
            before = time.monotonic()
            return False

        try:
            if not attempt.loaded:
                interview.load(attempt.program)
            before = time.monotonic()
            runs = self._grader.suite.run(interview, self._seed, stop=timed)
        except Ended:
            return _Heard(list(range(len(self._grader.suite.checks))), None, self._left() / 4)
        finally:
            interview.close()
        if interview.tripped:
            self.why = "It uses what is off limits, and the verdict says what."
            return None
        if all(run.error is None for run in runs):
            self.why = "Every check passes."
            return None
        failed = sorted((t, n) for n, t in enumerate(times) if runs[n].error is not None)
        passed = sorted((t, n) for n, t in enumerate(times) if runs[n].error is None)
        order = [n for _, n in [*failed, *passed]]
        return _Heard(order, interview.suspicion(), 3 * max(times) + 1.0)

    def _screen(self, heard: _Heard, right: str) -> Screen:
        """Return what asks processes about variants."""
        subject = self._subject
        screen = Screen(self._grader.suite, subject.open, self._seed, heard.order, heard.patience)
        if subject.several:
            screen.try_several(subject.attempt, subject.with_text(right), self._left() / 4)
        return screen

    def _passes(self, variant: Variant, screen: Screen) -> bool:
        """Say whether a variant passes every check. One that does is to be graded."""
        return screen.passes(self._subject.with_text(variant.source), self._left())

    def _has_full_marks(self, variant: Variant) -> bool:
        """Say whether the whole grader gives a variant full marks, whatever the inputs."""
        attempt = self._subject.with_text(variant.source)
        if scan(judged_text(attempt.program), self._grader.exercise.off_limits):
            return False
        return all(self._grade(attempt, seed) for seed in (self._seed, self._seed + _ANOTHER_SEED))

    def _grade(self, attempt: Attempt, seed: int) -> bool:
        """Grade a variant as the answer was graded; a person must have no reason to look at it."""
        patience = max(self._left(), 1.0)

        def open_variant() -> Transport:
            return self._subject.open(attempt, patience)

        verdict = self._grader.grade(attempt, open_variant, seed, open_variant, Clock(0.0))
        return (
            verdict.outcome is Outcome.PASSED
            and verdict.points >= verdict.max_points
            and not verdict.review
        )


@dataclass(frozen=True)
class _Heard:
    """What was learned of the answer: the order of checks, what speaks for lines, seconds to wait."""

    order: list[int]
    suspicion: Mapping[int, float] | None
    patience: float


class _Traced(Interview):
    """An interview that knows for each question which lines ran."""

    def __init__(
        self, transport: Transport, lines: Lines | None, grader: ExerciseGrader, seed: int
    ) -> None:
        super().__init__(transport, grader.exercise.off_limits, seed)
        self._lines = lines
        self._ran: dict[int, frozenset[int]] = {}
        self._now: list[int] = []
        self._of_failed: set[int] = set()
        self._of_passed: set[int] = set()

    def ask(self, probe: Probe, inputs: Mapping[str, Any]) -> Evidence:
        """Return the evidence of `probe` on `inputs`, and note the lines that ran for it."""
        if self._lines is not None:
            self._lines.take()
        evidence = super().ask(probe, inputs)
        if self._lines is not None:
            ran = self._lines.take()
            self._ran.setdefault(id(evidence), ran)  # asked again, nothing runs
            self._now.append(id(evidence))
        return evidence

    def note(self, run: CheckRun) -> None:
        """Note how a check ended. It failed on what it asked last."""
        if run.error is None:
            self._of_passed.update(self._now)
        elif self._now:
            self._of_failed.add(self._now[-1])
        self._now.clear()

    def suspicion(self) -> dict[int, float] | None:
        """Return Ochiai's coefficient of each line that ran; None where nothing is known."""
        if self._lines is None or not self._of_failed:
            return None
        failed: dict[int, int] = defaultdict(int)
        passed: dict[int, int] = defaultdict(int)
        for asked in self._of_failed:
            for line in self._ran[asked]:
                failed[line] += 1
        for asked in self._of_passed - self._of_failed:
            for line in self._ran[asked]:
                passed[line] += 1
        count = len(self._of_failed)
        return {
            line: number / math.sqrt(count * (number + passed[line]))
            for line, number in failed.items()
        } or None
