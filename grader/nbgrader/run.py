"""Grades one submission: a rebuilt notebook goes in; verdicts, transcripts and the notebook that
shows them come out. Plain nbgrader, the parallel command and a regrade all do it here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from traitlets.log import get_logger

from grader.box.aside import Exceeded
from grader.box.box import Box
from grader.box.mounts import refuse_shown
from grader.box.tiers import BoxUnavailable, Tier
from grader.course.cells import CellRole, role_of
from grader.course.course import Chapter, Exercise
from grader.evidence.outcome import Ended, Outcome
from grader.evidence.wire.channel import Transport
from grader.feedback.render import score_text, to_html
from grader.files import inert
from grader.inside.probe import Probe, load_probes
from grader.inside.process.budget import Budget, changed
from grader.nbgrader.reading import INTAKE, Reader
from grader.nbgrader.stopwatch import SHORT, OpenFor, Patience, Stopwatch
from grader.submission.grade_call import read_call
from grader.submission.program import Program
from grader.verdict.grading import Attempt, ExerciseGrader
from grader.verdict.hearing import Opening, Room
from grader.verdict.interview import Interview, Raised
from grader.verdict.limits import JudgeLimits, within_memory
from grader.verdict.other_answers import naming, other_answers
from grader.verdict.probe_versions import probe_versions
from grader.verdict.verdict import Message, Verdict, raised_message, without_checks


@dataclass(frozen=True)
class Terms:
    """How a grading run grades. `seed` is the secret that all inputs are drawn from."""

    seed: int
    budget: Budget = Budget()
    tier: Tier = Tier.NAMESPACES


class Run:
    """One grading run of a chapter: its terms, its box, its graders.

    `released` is the released notebook as the gradebook knows it.
    """

    def __init__(self, chapter: Chapter, terms: Terms, released: Mapping[str, Any]) -> None:
        self.chapter = chapter
        self.terms = terms
        self.released = released
        self.tier = str(terms.tier)
        self.reader = Reader(chapter, released)
        self._box: Box | None = None
        self._graders: dict[str, ExerciseGrader] = {}

    def __deepcopy__(self, memo: object) -> Run:
        return self  # nbconvert copies the resources that it hands from step to step

    def start(self) -> None:
        """Start the box, if there is none. Raises `BoxUnavailable`."""
        if self._box is None:
            if self.terms.tier is Tier.NAMESPACES:
                refuse_shown(self.chapter.root)
            self._box = Box(
                self.chapter.probes,
                self.chapter.preload,
                self.terms.budget,
                tier=self.terms.tier,
            )

    def close(self) -> None:
        """End the box with all that runs in it, and the process that reads."""
        self.reader.close()
        if self._box is not None:
            self._box.close()
            self._box = None

    def open(self, _: str, budget: Budget) -> Transport:
        """Return a fresh child of the box."""
        self.start()
        assert self._box is not None
        return self._box.open(budget)

    def budget(self, exercise: Exercise) -> Budget:
        """Return what an exercise may spend: the course's limits, changed by its own card."""
        return changed(self.terms.budget, exercise.budget)

    @cached_property
    def probes(self) -> dict[str, Probe]:
        """The chapter's probes."""
        return load_probes(self.chapter.probes)

    @cached_property
    def probe_versions(self) -> dict[str, str]:
        """A digest of each probe's code."""
        return probe_versions(self.chapter.probes, self.probes)

    def grader(self, exercise: str) -> ExerciseGrader:
        """Return the grader of an exercise, which keeps what it computes for this run."""
        if exercise not in self._graders:
            found = self.chapter.exercise(exercise)
            self._graders[exercise] = ExerciseGrader(self.chapter, found, self.probes, _LIMITS)
        return self._graders[exercise]


@dataclass(frozen=True)
class Graded:
    """What grading one submission came to. Verdicts, transcripts and the seconds that its code was
    waited for are by grade cell.
    """

    notebook: NotebookNode
    record: dict[str, Any]
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    replies: dict[str, dict[str, bytes]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def __deepcopy__(self, memo: object) -> Graded:
        return self


def grade_notebook(run: Run, nb: NotebookNode, open_for: OpenFor | None = None) -> Graded:
    """Write a verdict into each grade cell of a rebuilt notebook; return all that came of it.

    Student code runs where `open_for` opens, in children of the run's box if left out.
    """
    intake = nb.metadata.pop(INTAKE)
    record = {
        "student": intake.pop("student"),
        "chapter": run.chapter.id,
        "submission": notebook_digest(nb),
        "seed": run.terms.seed,
        "tier": run.tier,
        "intake": intake,
        "probes": run.probe_versions,
    }
    graded = Graded(nb, record)
    try:
        attempts = run.reader.attempts(nb)
    except Exceeded as error:
        intake["unreadable"] = f"reading it {error}"
        attempts = {}
    except Exception:  # each grade cell then says that it could not be graded
        get_logger().exception("The code of %s could not be taken apart", record["student"])
        attempts = {}
    patience = Patience(open_for or run.open)
    judge = _Judge(run, attempts, intake)
    with Room(lambda: patience.open("", run.terms.budget)) as room:
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.outputs = []
            role = _tested(cell)
            if role is None:
                continue
            name = role.grade_id
            watch = Stopwatch(patience.open)
            # transcripts are an exercise's own, and so is what answers from them
            where = _Where(watch.open, None if open_for else room)
            if patience.is_short:
                intake.setdefault("waited less", []).append(name)
            verdict, replies = judge.judge(role, cell.source, where)
            graded.verdicts[name], graded.replies[name] = verdict, replies
            graded.seconds[name] = watch.seconds
            show(cell, verdict)
    record["verdicts"] = [verdict.to_data() for verdict in graded.verdicts.values()]
    return graded


def show(cell: NotebookNode, verdict: Verdict) -> None:
    """Make a verdict the output of its grade cell. nbgrader reads the plain text: the points."""
    html = inert(to_html(verdict))  # a quoted line may turn what follows
    data = {"text/plain": score_text(verdict), "text/html": html}
    cell.outputs = [new_output("execute_result", data=data, execution_count=1)]
    cell.execution_count = 1


def _tested(cell: NotebookNode) -> CellRole | None:
    """Return the role of a grade cell that runs; None for one that a person grades, and others."""
    role = role_of(cell) if cell.cell_type == "code" else None
    return role if role and role.is_grade and not role.is_solution else None


@dataclass(frozen=True)
class _Where:
    """Where an exercise's code runs: in children that `open_for` opens, in a room shared by all or alone."""

    open_for: OpenFor
    room: Room | None


@dataclass(frozen=True)
class _Judge:
    """Judges the grade cells of one submission: its answers, and what is known of how it came in."""

    run: Run
    attempts: Mapping[str, Attempt]
    intake: Mapping[str, Any]

    def judge(self, role: CellRole, source: str, where: _Where) -> tuple[Verdict, dict[str, bytes]]:
        """Judge one grade cell; if the box died on the way, once more in a fresh one."""
        for trial in (1, 2):
            try:
                verdict, replies = self._judge(role, source, where)
                break
            except Exception as error:  # whatever it was, the submission must not vanish
                get_logger().exception("Grading %s failed", role.grade_id)
                if isinstance(error, BoxUnavailable):
                    self.run.close()
                    self.run.start()
                    if trial == 1:
                        continue
                why = f"The grader itself failed ({type(error).__name__}); its log says more."
                verdict, replies = _needs_review(role, why), {}
        return self._with_notes(verdict, role), replies

    def _judge(
        self, role: CellRole, source: str, where: _Where
    ) -> tuple[Verdict, dict[str, bytes]]:
        call = read_call(source)
        if call is None:
            return self._plain(role, source, where.open_for)
        exercise = self.run.chapter.exercise(call[0])
        if "refused" in self.intake:
            return _needs_review(role, self.intake["refused"]), {}
        if "unreadable" in self.intake:
            why = self.intake["unreadable"]
            message = Message(f"Your submission could not be read: {why}.")
            review = f"The submission is unreadable: {why}."
            return without_checks(exercise, Outcome.NEEDS_REVIEW, message, review), {}
        budget = self.run.budget(exercise)

        def open_one() -> Transport:
            return where.open_for(role.grade_id, budget)

        room = None if exercise.budget else where.room
        with within_memory(_LIMITS):
            return self.run.grader(exercise.id).interview(
                self.attempts[exercise.id],
                Opening(open_one, room) if room else open_one,
                self.run.terms.seed,
                lambda: self.run.open("", budget),
            )

    def _plain(
        self, role: CellRole, source: str, open_for: OpenFor
    ) -> tuple[Verdict, dict[str, bytes]]:
        """Run a hand-written test cell in the box, after everything that the student wrote.

        Its text is beside the student's code, which could tamper with it: weaker than a probe.
        """
        name, points, terms = role.grade_id, role.points, self.run.terms
        every = (part for attempt in self.attempts.values() for part in attempt.program.parts)
        interview = Interview(open_for(name, terms.budget), (), terms.seed)
        raised: Raised | None
        try:
            # no rules apply here
            interview.load(Program(name, tuple(dict.fromkeys(every))), judged=())
            raised = interview.run_plain(source)
        except Ended as ended:
            verdict = Verdict(name, name, 0.0, points, ended.outcome, Message(ended.detail))
            return verdict, interview.replies
        finally:
            interview.close()
        if raised is None:
            return Verdict(name, name, points, points, Outcome.PASSED), interview.replies
        message = raised_message(raised)
        return Verdict(name, name, 0.0, points, Outcome.FAILED, message), interview.replies

    def _with_notes(self, verdict: Verdict, role: CellRole) -> Verdict:
        """Return a verdict with what is to be said beside it, and why a person should look."""
        if (attempt := self.attempts.get(verdict.exercise)) is not None:
            verdict = naming(verdict, other_answers(attempt.program, self.attempts))
        everywhere = tuple(self.intake["notes"].get("", ()))
        own = tuple(self.intake["notes"].get(verdict.exercise, ()))
        reasons = [verdict.review, *everywhere, self._misled(verdict), self._hurried(verdict, role)]
        return replace(
            verdict,
            notes=(*verdict.notes, *own, *everywhere),
            review=" ".join(filter(None, reasons)),
            tier=self.run.tier,
        )

    def _misled(self, verdict: Verdict) -> str:
        """Return why a person should look at points lost with a notebook of another variant."""
        other = str(self.intake.get("other variants", {}).get(verdict.exercise, ""))
        return other if verdict.points < verdict.max_points else ""

    def _hurried(self, verdict: Verdict, role: CellRole) -> str:
        """Return why a person should look at an answer that did not come in a shorter time than others get."""
        less = role.grade_id in self.intake.get("waited less", ())
        if not less or verdict.outcome is not Outcome.TIMED_OUT:
            return ""
        return f"Others of its exercises took long, so this one was waited for {SHORT:g} s."


_LIMITS = JudgeLimits()


def _needs_review(role: CellRole, why: str) -> Verdict:
    name, points = role.grade_id, role.points
    message = Message("This could not be graded, so it has no score yet.")
    return Verdict(name, name, 0.0, points, Outcome.NEEDS_REVIEW, message, review=why)


def notebook_digest(nb: NotebookNode) -> str:
    """Return a digest of a notebook's text."""
    text = "\0".join(cell.source for cell in nb.cells)
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()
