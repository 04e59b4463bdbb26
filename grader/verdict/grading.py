"""From an attempt at one exercise to its verdict, wherever the student's code runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property

import IPython.core.inputtransformer2  # noqa: F401 (program.py wants it; here, before any fork)

from grader.course.answers import Answer, Role, read_answers
from grader.course.cells import Cell, Kind
from grader.course.course import Chapter, Exercise, read_reference
from grader.course.parameters import phrase, public_values
from grader.course.reference import public_answer, reference_answer
from grader.course.rules import Rule, RuleKind, describe_rule
from grader.evidence.outcome import Ended, Outcome
from grader.evidence.wire.channel import Transport
from grader.inside.probe import Probe
from grader.submission.evasion import evasions
from grader.submission.program import Program, slice_program
from grader.submission.reading import Reading, read_text
from grader.submission.reasons import Reason
from grader.verdict.checks import CheckRun, Suite
from grader.verdict.compare import NOTHING, Mismatch
from grader.verdict.diagnosis import Diagnosis, diagnose, may_explain
from grader.verdict.hearing import hear_again
from grader.verdict.interview import Interview, StudentRaised, load_request
from grader.verdict.known import PRACTICE_SEED, line_key, made_on, read_known, rests_on
from grader.verdict.limits import JudgeLimits, Judging, OverLimit, exceeded
from grader.verdict.marks import Mark, mark_of
from grader.verdict.relations import relation_of
from grader.verdict.torch_internals import other_torch
from grader.verdict.verdict import (
    Message,
    Verdict,
    earned_points,
    raised_message,
    score,
    without_checks,
)

OpenTransport = Callable[[], Transport]

PUBLIC_ANSWER = "public_answer"
"""The known mistake to hand in the public solution where a private variant is asked for."""


class Clock:
    """How long someone waits for a diagnosis, from the first look on."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end: float | None = None

    def left(self) -> float:
        """Return the seconds that are left, less than 0 if it has run out."""
        if self._end is None:
            self._end = time.monotonic() + self._seconds
        return self._end - time.monotonic()


@dataclass(frozen=True)
class Attempt:
    """One student's attempt: the program to load and the solution cell's text.

    `loaded` says that the names already exist, as in a live kernel. `reading` is what the text says,
    where a process with limits has read it; else it is read when it is graded.
    """

    program: Program
    source: str | None
    loaded: bool = False
    reading: Reading | None = None

    def read_for(self, exercise: Exercise) -> Reading:
        """Return what the text says, with respect to the exercise's stub and rules."""
        if self.reading is not None:
            return self.reading
        return read_text(self.program, self.source, exercise.stub, exercise.off_limits)


class ExerciseGrader:
    """Grades attempts at one exercise; keeps what it learned of the exercise's known mistakes."""

    def __init__(
        self,
        chapter: Chapter,
        exercise: Exercise,
        probes: dict[str, Probe],
        limits: JudgeLimits | None = None,
    ) -> None:
        self.chapter = chapter
        self._limits = limits
        self.exercise = exercise
        self._probes = probes
        self._known: dict[tuple[str, int], list[Mark]] = {}

    @cached_property
    def suite(self) -> Suite:
        """The exercise's checks."""
        return Suite(self.chapter.checks(self.exercise.id), self._probes, self.exercise.values)

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """The exercise's known answers. To a private variant, the public answer is a mistake."""
        exercise = self.exercise
        known = read_answers(self.chapter, exercise)
        return (*known, self._public_answer()) if exercise.variant else known

    def _public_answer(self) -> Answer:
        exercise = self.exercise
        ours = phrase(exercise.parameters, exercise.values)
        public = phrase(exercise.parameters, public_values(exercise.parameters))
        words = f"This is the answer to the public exercise: yours asks for {ours}, not {public}."
        source = public_answer(self.chapter, exercise.id)
        return Answer(Role.MISTAKE, PUBLIC_ANSWER, words, source)

    @cached_property
    def _reference(self) -> list[Cell]:
        """The code cells of the reference notebook."""
        return read_reference(self.chapter)

    def attempt_with(self, source: str) -> Attempt:
        """Return an attempt with this solution cell, among the reference's other cells."""
        cells = [
            Cell(Kind.SOLUTION, cell.label, source) if cell.label == self.exercise.id else cell
            for cell in self._reference
        ]
        names = [exercise.id for exercise in self.chapter.exercises]
        return Attempt(slice_program(self.exercise.id, names, cells), source)

    def grade(
        self,
        attempt: Attempt,
        open_transport: OpenTransport,
        seed: int,
        open_known: OpenTransport,
        clock: Clock | None = None,
    ) -> Verdict:
        """Return the verdict on an attempt.

        `open_transport` starts the process for the student's code, `open_known` those for the
        exercise's known mistakes; `clock` ends the search among them.
        """
        return self.interview(attempt, open_transport, seed, open_known, clock)[0]

    def interview(
        self,
        attempt: Attempt,
        open_transport: OpenTransport,
        seed: int,
        open_known: OpenTransport,
        clock: Clock | None = None,
    ) -> tuple[Verdict, dict[str, bytes]]:
        """Return the verdict on an attempt and the replies it rests on, by probe and inputs."""
        read = attempt.read_for(self.exercise)
        verdict, replies = self._interview(attempt, read, open_transport, seed, open_known, clock)
        return self._with_reasons_to_look(verdict, read), replies

    def judge(
        self, attempt: Attempt, open_transport: OpenTransport, seed: int
    ) -> tuple[Verdict, list[CheckRun]]:
        """Return the verdict on an attempt, with nothing beside it that explains it, and the checks' runs.

        No runs where none are needed, or the process ended.
        """
        verdict, runs, _ = self._judged(
            attempt, attempt.read_for(self.exercise), open_transport, seed
        )
        return verdict, runs

    def _interview(
        self,
        attempt: Attempt,
        read: Reading,
        open_transport: OpenTransport,
        seed: int,
        open_known: OpenTransport,
        clock: Clock | None,
    ) -> tuple[Verdict, dict[str, bytes]]:
        exercise = self.exercise
        verdict, runs, interview = self._judged(attempt, read, open_transport, seed)
        if interview is None:
            return verdict, {}
        if verdict.checks and verdict.outcome is not Outcome.PASSED:
            verdict = self._explained(verdict, runs, seed, open_known, clock)
        heard_once = attempt.loaded or not self._has_claims
        if heard_once or not verdict.points or verdict.review:
            return verdict, interview.replies
        load = load_request(attempt.program, read.judged, exercise.off_limits)
        heard = hear_again(load, interview.asked, open_transport, exercise.off_limits, seed)
        return replace(verdict, review=heard.review), {**interview.replies, **heard.replies}

    def _judged(
        self, attempt: Attempt, read: Reading, open_transport: OpenTransport, seed: int
    ) -> tuple[Verdict, list[CheckRun], Interview | None]:
        """Return the verdict, the checks' runs, and the interview if the text alone was not enough."""
        exercise = self.exercise
        if read.trouble:
            message = Message("Your answer could not be read. A person will look at it.")
            review = f"Its text is unreadable: {read.trouble}."
            return without_checks(exercise, Outcome.NEEDS_REVIEW, message, review), [], None
        if read.untouched:
            return self._not_attempted(), [], None
        if read.broken:
            return self._blocked(read.broken), [], None
        interview = Interview(open_transport(), exercise.off_limits, seed)
        try:
            if not attempt.loaded:
                interview.load(attempt.program, read.judged)
            runs = self.suite.run(interview, seed, limits=self._limits)
        except Ended as ended:
            return without_checks(exercise, ended.outcome, Message(ended.detail)), [], interview
        finally:
            interview.close()
        return self._judge(runs, interview), runs, interview

    @cached_property
    def _has_claims(self) -> bool:
        """Say whether anything rests on what was observed: a rule, or a check that is claimed."""
        rules = any(rule.kind is not RuleKind.IMPORT for rule in self.exercise.off_limits)
        return rules or any(check.claimed for check in self.suite.checks)

    def _with_reasons_to_look(self, verdict: Verdict, read: Reading) -> Verdict:
        """Return the verdict with what in the text is a reason for a person to look, beside others."""
        if verdict.outcome is Outcome.NOT_ATTEMPTED:
            return verdict
        said: dict[str, str] = {}  # a line is quoted once
        for one in read.evasive:
            if one.reason not in self._asked_for:
                said.setdefault(one.line, str(one))
        return replace(verdict, review=" ".join(filter(None, [verdict.review, *said.values()])))

    @cached_property
    def _asked_for(self) -> frozenset[Reason]:
        """What the exercise leads to: its reference or another right answer does it too."""
        right = [answer.source for answer in self.answers if answer.role is Role.ALTERNATE]
        programs = [
            self.attempt_with(source).program
            for source in (reference_answer(self.chapter, self.exercise), *right)
        ]
        return frozenset(
            one.reason
            for program in programs
            for one in evasions(program, self.exercise.off_limits)
        )

    def _judge(self, runs: list[CheckRun], interview: Interview) -> Verdict:
        if interview.tripped:
            return self._blocked(interview.broken())
        outcome = _outcome(runs, interview)
        if outcome is Outcome.NOT_ATTEMPTED:
            return self._not_attempted()
        checks = score(self.exercise, runs)
        return Verdict(
            self.exercise.id,
            self.exercise.title,
            0.0 if _gate_failed(runs) else earned_points(self.exercise, checks),
            self.exercise.points,
            outcome,
            _summary(self.exercise, runs, interview),
            checks,
            notes=_notes(runs, interview),
            review=_review(interview, runs),
            chapter=self.exercise.chapter,
        )

    def _explained(
        self,
        verdict: Verdict,
        runs: list[CheckRun],
        seed: int,
        open_known: OpenTransport,
        clock: Clock | None,
    ) -> Verdict:
        """Return the verdict with the diagnosis, where a known mistake fails alike, and the relation."""
        verdict = replace(verdict, relation=_relation(runs, self._limits))
        marks = [mark_of(run) for run in runs]
        found = None
        if seed == PRACTICE_SEED and not self._knows_mistakes(seed):
            found = self._prepared_diagnosis(marks)
        if found is None:
            found = diagnose(marks, self._known_marks(marks, seed, open_known, clock))
        if found is None:
            return verdict
        return replace(verdict, diagnosis=found.words, mistake=found.mistake)

    def _prepared_diagnosis(self, marks: list[Mark]) -> Diagnosis | None:
        """Return what explains `marks`, of the mistakes whose marks were made beforehand.

        Where they were made on such a processor as this one, they need not be made again.
        """
        where, prepared = self._prepared
        here = where == made_on()
        found = []
        for answer in self._mistakes:
            if (known := prepared.get(answer.name)) is None:
                continue
            found.append((answer, known))
            if here:
                self._known.setdefault((answer.name, PRACTICE_SEED), list(known))
        # one that is missing may be the one that explains it best
        return diagnose(marks, found) if len(found) == len(self._mistakes) else None

    @cached_property
    def _prepared(self) -> tuple[str, dict[str, tuple[Mark, ...]]]:
        """Where the mistakes' marks were made, and those that are of today, by the mistakes' names."""
        where, lines = read_known(self.chapter, self.exercise.id)
        if not lines:
            return where, {}
        found = {name: lines.get(key) for name, key in self.mistake_keys().items()}
        return where, {name: marks for name, marks in found.items() if marks is not None}

    def mistake_keys(self) -> dict[str, str]:
        """Return the `line_key` of each known mistake, by its name."""
        rests = rests_on(self.chapter, self.exercise)
        return {
            answer.name: line_key(rests, self.attempt_with(answer.source).program)
            for answer in self._mistakes
        }

    @property
    def _mistakes(self) -> list[Answer]:
        return [answer for answer in self.answers if answer.role is Role.MISTAKE]

    def know_mistakes(self, seed: int, open_known: OpenTransport) -> dict[str, list[Mark]]:
        """Run every known mistake to its end, and return its marks by its name.

        For who judges many answers, so that none is run in parts, and who writes the marks down.
        """
        marks = {answer.name: self.marks_of(answer, seed, open_known) for answer in self._mistakes}
        self._known |= {(name, seed): known for name, known in marks.items()}
        return marks

    def _knows_mistakes(self, seed: int) -> bool:
        return all((answer.name, seed) in self._known for answer in self._mistakes)

    def _known_marks(
        self, marks: list[Mark], seed: int, open_known: OpenTransport, clock: Clock | None
    ) -> list[tuple[Answer, list[Mark]]]:
        """Return the known mistakes, each run at least as far as it may explain `marks`.

        The first time it stops there: someone may be waiting in a notebook. The second time it is
        run to its end, for all who come after. None if the clock runs out before all are known.
        """
        found = []
        for answer in self._mistakes:
            key = answer.name, seed
            known = self._known.get(key)
            if known is None or (len(known) < len(marks) and may_explain(known, marks)):
                if clock is not None and clock.left() <= 0:
                    return []
                first = known is None
                known = self.marks_of(
                    answer,
                    seed,
                    open_known,
                    stop=lambda theirs, first=first: first and not may_explain(theirs, marks),  # type: ignore[misc]
                )
                if clock is not None and clock.left() <= 0:  # what it ended is no evidence
                    return []
                self._known[key] = known
            found.append((answer, known))
        return found

    def marks_of(
        self,
        answer: Answer,
        seed: int,
        open_known: OpenTransport,
        *,
        stop: Callable[[list[Mark]], bool] = lambda marks: False,
    ) -> list[Mark]:
        """Return the marks of a known answer, until `stop` says that they are enough."""
        marks: list[Mark] = []

        def enough(runs: list[CheckRun]) -> bool:
            marks.append(mark_of(runs[-1]))
            return stop(marks)

        runs = self.run_answer(answer, seed, open_known, stop=enough)
        return marks if len(marks) == len(runs) else [mark_of(run) for run in runs]

    def run_answer(
        self,
        answer: Answer,
        seed: int,
        open_known: OpenTransport,
        *,
        stop: Callable[[list[CheckRun]], bool] = lambda runs: False,
    ) -> list[CheckRun]:
        """Run the checks against a known answer, until `stop` says that it is enough."""
        interview = Interview(open_known(), self.exercise.off_limits, seed)
        try:
            interview.load(self.attempt_with(answer.source).program)
            return self.suite.run(interview, seed, stop=stop)
        except Ended as ended:
            return [CheckRun(check, ended, ()) for check in self.suite.checks]
        finally:
            interview.close()

    def _not_attempted(self) -> Verdict:
        message = Message("Nothing here yet: the cell still holds its stub.")
        return without_checks(self.exercise, Outcome.NOT_ATTEMPTED, message)

    def _blocked(self, broken: Sequence[tuple[Rule, str]]) -> Verdict:
        rows = tuple((describe_rule(rule), line) for rule, line in broken)
        what = self.exercise.forbids
        limits = f"Off limits here: {what}." if what else "Its card lists what is off limits."
        message = Message(f"This uses what the exercise asks you to build. {limits}", rows)
        words = ", ".join(describe_rule(rule) for rule, _ in broken)
        review = f"Used what is off limits: {words}."
        return without_checks(self.exercise, Outcome.BLOCKED, message, review)


def _relation(runs: Sequence[CheckRun], limits: JudgeLimits | None) -> str:
    """Return how what came is related to what was expected. No verdict fails for want of it."""
    try:
        with Judging(limits).check() if limits else nullcontext():
            return relation_of(runs)
    except (RuntimeError, TypeError, ValueError, ArithmeticError, LookupError, MemoryError):
        return (
            ""  # what came may be anything: a dtype that can do little, numbers beyond all bounds
        )
    except OverLimit:
        return ""


def _outcome(runs: Sequence[CheckRun], interview: Interview) -> Outcome:
    if interview.ended is not None:
        return interview.ended.outcome
    errors = [run.error for run in runs]
    if not any(errors):
        return Outcome.PASSED
    return Outcome.NOT_ATTEMPTED if all(map(_of_a_stub, errors)) else Outcome.FAILED


def _of_a_stub(error: BaseException | None) -> bool:
    """Say whether a stub raised this. PyTorch's own `NotImplementedError` says what is missing."""
    return (
        isinstance(error, StudentRaised)
        and error.raised.is_a("NotImplementedError")
        and not error.raised.message
    )


def _review(interview: Interview, runs: Sequence[CheckRun]) -> str:
    """Say what the code replaced, and which checks were stopped. A person should know."""
    said = []
    if interview.tampered:
        said.append(f"While it ran, the code replaced {', '.join(interview.tampered)}.")
    for run in runs:
        if run.error is not None and (over := exceeded(run.error)):
            said.append(f"{run.check.name} was stopped: what the code gave {over}.")
    return " ".join(said)


def _notes(runs: Sequence[CheckRun], interview: Interview) -> tuple[str, ...]:
    """Say what returning means to someone who printed the answer; and if torch is another one."""
    notes = [note] if (note := other_torch()) else []
    wrong = [run.error for run in runs if isinstance(run.error, Mismatch)]
    nothing = any(error.what == NOTHING or ("got", "None") in error.rows for error in wrong)
    if nothing and interview.printed:
        notes.append("Your code prints something. `print` shows a value; `return` hands it back.")
    return tuple(notes)


def _gate_failed(runs: Sequence[CheckRun]) -> bool:
    return any(run.error is not None and run.check.weight == 0 for run in runs)


def _summary(exercise: Exercise, runs: Sequence[CheckRun], interview: Interview) -> Message | None:
    """Say what stopped the solution cell, if that is why its name is missing."""
    if interview.ended is not None:
        return Message(interview.ended.detail)
    stopped = interview.stopped.get(exercise.id)
    missing = any(
        isinstance(run.error, StudentRaised) and run.error.raised.type == "MissingName"
        for run in runs
    )
    if stopped is None or not missing:
        return None
    message = raised_message(stopped)
    return replace(message, what=f"The solution cell stopped before it was done. {message.what}")
