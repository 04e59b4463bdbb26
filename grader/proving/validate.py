"""The course checks itself: every known answer gets the verdict that it must get.

What is missing or wrong is said with the file, or the command, that mends it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import nbformat

from grader.box.fork import Fork
from grader.building.graders import ready_probes
from grader.course.answers import Answer, Role
from grader.course.course import Chapter, Exercise, read_reference
from grader.course.exercise import minutes_of, short_path
from grader.course.rules import describe_rule
from grader.evidence.outcome import Outcome
from grader.inside.process.budget import Budget, changed
from grader.proving.firing import CALLS, silent
from grader.verdict.checks import CheckRun
from grader.verdict.diagnosis import diagnose
from grader.verdict.grading import ExerciseGrader, OpenTransport
from grader.verdict.marks import Mark, mark_of
from grader.verdict.verdict import Verdict

HINTS = 3
"""Hints that every exercise has: where to look, how to go about it, the trap."""

MISTAKES = 4
"""Fewest mistakes of an exercise."""

TRIVIAL = {
    "returns None": "return None",
    "returns its first argument": "return args[0]",
    "returns zeros": "import torch\n    return torch.zeros_like(args[0])",
    "returns 0.0": "return 0.0",
    "returns an empty list": "return []",
}
"""Answers that know nothing, as bodies of a function; each must score 0."""


@dataclass(frozen=True)
class Problem:
    """Something wrong with an exercise, and what mends it."""

    where: str
    what: str
    mend: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}\n    mend: {self.mend}"


@dataclass(frozen=True)
class Proof:
    """What was found of one exercise. `marks` are those of its known mistakes, by their names.

    `seconds` of a processor is what the known answers took.
    """

    exercise: Exercise
    checks: int
    mistakes: int
    alternates: int
    problems: tuple[Problem, ...]
    marks: Mapping[str, Sequence[Mark]]
    seconds: float


def prove(chapter: Chapter, exercise: Exercise, seed: int) -> Proof:
    """Run every known answer of an exercise, and look over its parts."""
    used = _processor_seconds()
    probes = ready_probes(chapter)
    grader = ExerciseGrader(chapter, exercise, probes)
    budget = changed(Budget(), exercise.budget)
    judge = _Judge(chapter, grader, lambda: Fork(probes, budget), seed)
    problems = [*_parts(chapter, exercise, grader), *_rules(chapter, exercise), *judge.problems()]
    roles = [answer.role for answer in grader.answers]
    return Proof(
        exercise,
        sum(1 for check in grader.suite.checks if check.weight),
        roles.count(Role.MISTAKE),
        roles.count(Role.ALTERNATE),
        tuple(problems),
        judge.marks,
        _processor_seconds() - used,
    )


def _processor_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])


class _Judge:
    """Judges answers to one exercise and says which verdicts are not as they must be.

    `marks` are those of the mistakes, once they are judged.
    """

    def __init__(
        self, chapter: Chapter, grader: ExerciseGrader, open_transport: OpenTransport, seed: int
    ) -> None:
        self._chapter = chapter
        self._grader = grader
        self._open = open_transport
        self._seed = seed
        self._checks = f"grader/{chapter.id}/test_{grader.exercise.id}.py"
        self._answers = f"grader/{chapter.id}/answers/{grader.exercise.id}.md"
        self.marks: dict[str, list[Mark]] = {}

    def problems(self) -> Iterator[Problem]:
        exercise = self._grader.exercise
        stub, _ = self._judged(exercise.stub)
        if stub.outcome is not Outcome.NOT_ATTEMPTED or stub.points:
            yield Problem(
                exercise.id, f"the stub is {stub.outcome}, not `not attempted`", self._checks
            )
        reference = next(
            cell.source for cell in read_reference(self._chapter) if cell.label == exercise.id
        )
        yield from self._right("reference", reference)
        yield from self._mistakes()
        for answer in self._grader.answers:
            if answer.role is Role.ALTERNATE:
                yield from self._right(f"alternate {answer.name}", answer.source)
            elif answer.role is Role.BLOCKED:
                yield from self._forbidden(answer)
        for name, body in TRIVIAL.items():
            verdict, _ = self._judged(f"def {exercise.id}(*args, **kwargs):\n    {body}\n")
            if verdict.points:
                passed = ", ".join(c.name for c in verdict.checks if c.earned)
                yield Problem(
                    exercise.id,
                    f"an answer that {name} scores {verdict.points:g} ({passed})",
                    f"make what it passes a @gate, or ask more of it, in {self._checks}",
                )

    def _judged(self, source: str) -> tuple[Verdict, list[CheckRun]]:
        return self._grader.judge(self._grader.attempt_with(source), self._open, self._seed)

    def _mistakes(self) -> Iterator[Problem]:
        """Judge all mistakes, each once; then find those that the checks do not tell apart."""
        judged = []
        for answer in self._grader.answers:
            if answer.role is Role.MISTAKE:
                verdict, runs = self._judged(answer.source)
                self.marks[answer.name] = [mark_of(run) for run in runs]
                judged.append((answer, verdict))
        known = [(answer, self.marks[answer.name]) for answer, _ in judged]
        for (answer, verdict), (_, marks) in zip(judged, known, strict=True):
            where = self._where(answer)
            if verdict.outcome in (Outcome.PASSED, Outcome.BLOCKED, Outcome.NOT_ATTEMPTED):
                yield Problem(where, f"is {verdict.outcome}", "write a check that it fails")
                continue
            found = diagnose(marks, known) if marks else None
            if found is None or found.words != answer.explanation:  # it may have several spellings
                other = f"that of {found.mistake}" if found else "none"
                yield Problem(
                    where,
                    f"its diagnosis is {other}.{_first_failure(verdict)}",
                    f"make the checks tell them apart, or merge them, in {self._answers}",
                )

    def _forbidden(self, answer: Answer) -> Iterator[Problem]:
        verdict, _ = self._judged(answer.source)
        if verdict.outcome is not Outcome.BLOCKED or verdict.points:
            mend = "add what it uses to `off limits` in its card"
            yield Problem(self._where(answer), f"is {verdict.outcome}", mend)

    def _where(self, answer: Answer) -> str:
        return f"{self._grader.exercise.id}, {answer.role.value} {answer.name}"

    def _right(self, name: str, source: str) -> Iterator[Problem]:
        """Find what is wrong about a right answer: less than full marks, or a reason for a person to look."""
        where = f"{self._grader.exercise.id}, {name}"
        attempt = self._grader.attempt_with(source)
        verdict = self._grader.grade(attempt, self._open, self._seed, self._open)
        if verdict.outcome is not Outcome.PASSED or verdict.points != verdict.max_points:
            points = f"{verdict.points:g} of {verdict.max_points:g}"
            yield Problem(
                where,
                f"is {verdict.outcome}, {points}.{_first_failure(verdict)}",
                "correct the answer, or the check if the answer is right",
            )
        elif verdict.review:
            yield Problem(
                where,
                f"is put before a person: {verdict.review}",
                "correct the answer, or what is watched if the answer is right",
            )


def _first_failure(verdict: Verdict) -> str:
    """Return " rubric: what was said" of the first check that failed, or why none was run."""
    failed = next((c for c in verdict.checks if c.message), None)
    reason = verdict.summary or (failed.message if failed else None)
    said = f" {failed.rubric}" if failed else ""
    return said + (f" {reason.what} {dict(reason.rows)}" if reason else "")


def _parts(chapter: Chapter, exercise: Exercise, grader: ExerciseGrader) -> Iterator[Problem]:
    answers = f"grader/{chapter.id}/answers/{exercise.id}.md"
    source = f"solutions/{chapter.id}/{chapter.name}.pct.py"
    hints = _section(chapter, exercise).count("<details><summary>Hint")
    if hints != HINTS:
        yield Problem(exercise.id, f"has {hints} hints, not {HINTS}", source)
    roles = [answer.role for answer in grader.answers]
    if roles.count(Role.MISTAKE) < MISTAKES:
        yield Problem(exercise.id, f"has fewer than {MISTAKES} mistakes", answers)
    if Role.ALTERNATE not in roles:
        yield Problem(exercise.id, "has no alternate", answers)
    if exercise.off_limits and (not roles or roles[0] is not Role.BLOCKED):
        yield Problem(exercise.id, "its first known answer is not a `blocked` one", answers)
    if not exercise.off_limits and Role.BLOCKED in roles:
        yield Problem(exercise.id, "has blocked answers and nothing off limits", source)
    names = [answer.name for answer in grader.answers]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Problem(exercise.id, f"has two known answers named {name}", answers)
    known = [other.id for other in chapter.exercises]
    for other in exercise.prerequisites:
        if other not in known[: known.index(exercise.id)]:
            yield Problem(exercise.id, f"its prerequisite {other} does not come before it", source)


def _rules(chapter: Chapter, exercise: Exercise) -> Iterator[Problem]:
    """Break every rule in each way there is; find those that nothing notices."""
    for rule in exercise.off_limits:
        for use in silent(chapter, rule):
            yield Problem(
                f"{exercise.id}, off limits {describe_rule(rule)}",
                f"is not noticed when it is broken:\n        {use.replace(chr(10), chr(10) + ' ' * 8)}",
                "name what is really called; for an operator, write a valid call into "
                f"grader/{chapter.id}/{CALLS}",
            )


SITTING = range(60, 91)
"""Minutes of a sitting: long enough for a question, short enough for an evening."""

SHORT_PATH = range(120, 181)
"""Minutes of a chapter's short path."""


def pacing(chapter: Chapter) -> Iterator[Problem]:
    """Find sittings that are too long or too short, and a short path that lacks something."""
    source = f"solutions/{chapter.id}/{chapter.name}.pct.py"
    sittings = chapter.sittings
    whole = minutes_of(chapter.exercises)
    if not sittings and whole > SITTING[-1]:
        what = f"takes {whole} minutes and declares no sittings"
        yield Problem(
            chapter.id, what, f'begin each with `# %% [markdown] sitting="…"` in {source}'
        )
    for one in sittings:
        if one.minutes not in SITTING:
            what = f"takes {one.minutes} minutes, not {SITTING[0]} to {SITTING[-1]}"
            mend = f"move where it begins or ends, in {source}"
            yield Problem(f"{chapter.id}, sitting {one.id}", what, mend)
    short = short_path(chapter.exercises)
    if sittings and minutes_of(short) not in SHORT_PATH:
        what = f"takes {minutes_of(short)} minutes, not {SHORT_PATH[0]} to {SHORT_PATH[-1]}"
        mend = f"put `short: true` into other cards of {source}"
        yield Problem(f"{chapter.id}, short path", what, mend)
    there = {exercise.id for exercise in short}
    for exercise in short:
        for other in exercise.prerequisites:
            if other not in there:
                what = f"is on the short path and builds on {other}, which is not"
                yield Problem(exercise.id, what, f"put both on it, or neither, in {source}")


def _section(chapter: Chapter, exercise: Exercise) -> str:
    """Return the prose between an exercise's card and its solution cell."""
    text: list[str] = []
    inside = False
    for cell in nbformat.read(chapter.released, as_version=4).cells:
        inside = inside or cell.id == f"{exercise.id}-card"
        if cell.id == exercise.id:
            break
        if inside and cell.cell_type == "markdown":
            text.append(cell.source)
    return "\n".join(text)


def orphans(chapter: Chapter) -> Iterator[Problem]:
    """Find files of a chapter's graders that belong to no exercise, and exercises without files."""
    known = {exercise.id for exercise in chapter.exercises}
    for path in sorted(chapter.graders.glob("test_*.py")):
        if path.stem.removeprefix("test_") not in known:
            yield Problem(str(path.name), "belongs to no exercise", "remove it, or write its card")
    for path in sorted((chapter.graders / "answers").glob("*.md")):
        if path.stem not in known:
            yield Problem(str(path.name), "belongs to no exercise", "remove it, or write its card")
    for exercise in chapter.exercises:
        if not chapter.checks(exercise.id).is_file():
            mend = f"undertorch new exercise {chapter.id} {exercise.id}"
            yield Problem(exercise.id, "has no checks", mend)
