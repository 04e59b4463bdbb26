"""Are verdicts and explanations the same whatever the seed? Where it may be luck, more seeds are asked.

A check that draws its inputs may find a mistake with one seed and pass it with another, tell two
mistakes apart with one and not with another, or refuse a right answer now and then. A proof has one
seed: who draws another one, with a commit that has nothing to do with it, would be the first to know;
or a student.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from grader.box.fork import Fork
from grader.building.graders import ready_probes
from grader.course.answers import Answer, Role
from grader.course.course import Chapter, Exercise
from grader.course.reference import reference_answer
from grader.evidence.outcome import Ended, Outcome
from grader.inside.process.budget import Budget, changed
from grader.proving.validate import Problem
from grader.submission.program import Program
from grader.verdict.checks import CheckRun
from grader.verdict.diagnosis import diagnose
from grader.verdict.grading import ExerciseGrader
from grader.verdict.interview import Interview
from grader.verdict.marks import Mark, mark_of

SEEDS = 8
"""Other seeds for right answers, and for what one check finds: what comes with one seed in four is seen
nine times of ten."""

FEWER_SEEDS = 3
"""Other seeds for what several checks find: it passes with none, but may look like another mistake."""

Marks = Mapping[str, Sequence[Mark]]
"""Marks of mistakes, by their names."""


def found_by_chance(chapter: Chapter, exercise: Exercise, marks: Marks, seed: int) -> list[Problem]:
    """Return the mistakes that pass, or lose their explanation, with other seeds.

    Asked are mistakes that a single check finds, and those that fail the same checks as one that is
    explained otherwise.

    marks: of the mistakes, as `seed` made them
    """
    return list(_Asking(chapter, exercise).problems(marks, seed))


def refused_by_chance(
    chapter: Chapter, exercise: Exercise, seed: int, count: int = SEEDS
) -> list[Problem]:
    """Return the right answers, reference and alternates, that are refused with some of `count` other seeds."""
    return list(_Asking(chapter, exercise).refusals(range(seed + 1, seed + 1 + count)))


def _failing_alike(
    answers: Sequence[Answer], marks: Marks
) -> Iterator[tuple[tuple[int, ...], list[Answer]]]:
    """Yield the numbers of checks and the mistakes that fail just these."""
    groups = defaultdict(list)
    for answer in answers:
        if answer.role is Role.MISTAKE:
            known = marks.get(answer.name, ())
            groups[tuple(n for n, mark in enumerate(known) if mark.failure)].append(answer)
    for checks, alike in groups.items():
        if checks:  # else it passes, or was never run: that is told already
            yield checks, alike


def _unexplained(answers: Sequence[Answer], marks: Sequence[Sequence[Mark]]) -> Iterator[Answer]:
    """Yield answers that have not their own explanation, by marks of each."""
    known = list(zip(answers, marks, strict=True))
    for answer, theirs in known:
        found = diagnose(theirs, known) if any(mark.failure for mark in theirs) else None
        if found is None or found.words != answer.explanation:
            yield answer


class _Asking:
    """Asks an exercise's known answers with other seeds."""

    def __init__(self, chapter: Chapter, exercise: Exercise) -> None:
        probes = ready_probes(chapter)
        self._grader = ExerciseGrader(chapter, exercise, probes)
        self._open = partial(Fork, probes, changed(Budget(), exercise.budget))
        self._checks = f"grader/{chapter.id}/test_{exercise.id}.py"

    def problems(self, marks: Marks, seed: int) -> Iterator[Problem]:
        """Yield what is wrong with other seeds, by the marks that `seed` made."""
        for checks, alike in _failing_alike(self._grader.answers, marks):
            if len(checks) == 1 or len({answer.explanation for answer in alike}) > 1:
                yield from self._problems(checks, alike, seed)

    def refusals(self, seeds: Sequence[int]) -> Iterator[Problem]:
        """Yield the right answers that are refused with some of these seeds."""
        right = {"reference": reference_answer(self._grader.chapter, self._grader.exercise)}
        for answer in self._grader.answers:
            if answer.role is Role.ALTERNATE:
                right[f"alternate {answer.name}"] = answer.source
        checks = range(len(self._grader.suite.checks))
        for name, source in right.items():
            asked = zip(seeds, self._marks_of(source, checks, seeds), strict=True)
            failed = [seed for seed, marks in asked if any(mark.failure for mark in marks)]
            # in a process of its own, which was asked nothing before
            refused = {
                seed: marks
                for seed in failed
                for outcome, marks in [self._judged(source, seed)]
                if outcome is not Outcome.PASSED
            }
            if refused:
                by = {
                    n for marks in refused.values() for n, mark in enumerate(marks) if mark.failure
                }
                what = f"is refused with {_such(list(refused), seeds)}: {self._named(sorted(by))}"
                mend = "ask for nothing that hangs on what is drawn"
                yield self._problem(name, what, mend)

    def _named(self, checks: Sequence[int]) -> str:
        return ", ".join(self._grader.suite.checks[number].name for number in checks)

    def _problems(
        self, checks: Sequence[int], alike: Sequence[Answer], seed: int
    ) -> Iterator[Problem]:
        seeds = range(seed + 1, seed + 1 + (SEEDS if len(checks) == 1 else FEWER_SEEDS))
        asked = [self._marks_of(answer.source, checks, seeds) for answer in alike]
        passed: dict[Answer, list[int]] = defaultdict(list)
        lost: dict[Answer, list[int]] = defaultdict(list)
        for other, marks in zip(seeds, zip(*asked, strict=True), strict=True):
            if not any(_unexplained(alike, marks)):
                continue
            # by these checks alone: by all of them, and by rules, it may be found, and told apart
            whole = [self._judged(answer.source, other) for answer in alike]
            for answer in _unexplained(alike, [marks for _, marks in whole]):
                outcome, _ = whole[alike.index(answer)]
                (passed if outcome is Outcome.PASSED else lost)[answer].append(other)
        named = self._named(checks)
        for answer, others in passed.items():
            what = f"is passed with {_such(others, seeds)}: {named} found it by chance"
            yield self._problem(f"mistake {answer.name}", what, "ask for it whatever is drawn")
        for answer, others in lost.items():
            what = f"is not explained with {_such(others, seeds)}: {named} told it apart by chance"
            mend = "tell it from other mistakes whatever is drawn"
            yield self._problem(f"mistake {answer.name}", what, mend)

    def _problem(self, answer: str, what: str, mend: str) -> Problem:
        where = f"{self._grader.exercise.id}, {answer}"
        return Problem(where, what, f"{mend}, in {self._checks}")

    def _judged(self, source: str, seed: int) -> tuple[Outcome, list[Mark]]:
        attempt = self._grader.attempt_with(source)
        verdict, runs = self._grader.judge(attempt, self._open, seed)
        return verdict.outcome, [mark_of(run) for run in runs]

    def _marks_of(
        self, source: str, checks: Sequence[int], seeds: Sequence[int]
    ) -> list[list[Mark]]:
        """Return the marks of an answer by these checks, for each seed."""
        program = self._grader.attempt_with(source).program
        found: list[list[Mark]] = []
        while len(found) < len(seeds):
            found += self._in_one_process(program, checks, seeds[len(found) :])
        return found

    def _in_one_process(
        self, program: Program, checks: Sequence[int], seeds: Sequence[int]
    ) -> list[list[Mark]]:
        """Return marks for each seed, until the process ends; for the first in any case."""
        process = self._open()
        found: list[list[Mark]] = []
        try:
            for seed in seeds:
                interview = Interview(process, self._grader.exercise.off_limits, seed)
                if not found:
                    interview.load(program)
                runs = self._grader.suite.run(interview, seed, order=checks)
                if found and interview.ended:
                    break  # maybe of what it was asked before
                found.append([mark_of(run) for run in runs])
        except Ended as ended:  # as it was loaded
            found = [[mark_of(CheckRun(self._grader.suite.checks[n], ended, ())) for n in checks]]
        finally:
            process.close()
        return found


def _such(others: Sequence[int], seeds: Sequence[int]) -> str:
    return f"{len(others)} of {len(seeds)} other seeds, such as {others[0]}"
