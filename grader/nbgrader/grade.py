"""nbgrader's steps for grading: run the exercises in the box, write verdicts into the notebook."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades
from nbgrader.utils import is_grade
from traitlets import Bool, Float, Integer

from grader.core.course import Chapter, source_of
from grader.core.evidence import Interview, Raised
from grader.core.grading import Attempt, ExerciseGrader
from grader.core.outcome import Ended, Outcome
from grader.core.probe import Probe, load_probes
from grader.core.program import Cell, Kind, Program, slice_program
from grader.core.render import Report
from grader.core.store import Store
from grader.core.verdict import Message, Verdict, raised_message, without_checks
from grader.engine.box import Box
from grader.engine.budget import MIB, Budget

_CALL = re.compile(r"""^\s*grade\(\s*["'](\w+)["']\s*\)\s*;?\s*$""")


class Run:
    """One grading run of a chapter: its box, its secret seed, its graders."""

    def __init__(self, chapter: Chapter, box: Box, seed: int) -> None:
        self.chapter = chapter
        self.box = box
        self.seed = seed or secrets.randbits(48)
        self.tier = str(box.tier)
        self._graders: dict[str, ExerciseGrader] = {}

    def __deepcopy__(self, memo: object) -> Run:
        return self  # nbconvert copies the resources that it hands from step to step

    @cached_property
    def probes(self) -> dict[str, Probe]:
        """The chapter's probes."""
        return load_probes(self.chapter.probes)

    def grader(self, exercise: str) -> ExerciseGrader:
        """Return the grader of an exercise, which keeps what it computes for this run."""
        if exercise not in self._graders:
            found = self.chapter.exercise(exercise)
            self._graders[exercise] = ExerciseGrader(self.chapter, found, self.probes)
        return self._graders[exercise]


class ResetScores(NbGraderPreprocessor):
    """First of all forget the last grading: after a failure no old score may stay."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Mark every grade of this submission as not known."""
        names = resources["nbgrader"]
        with Gradebook(names["db_url"]) as gradebook:
            try:
                submission = gradebook.find_submission_notebook(
                    names["notebook"], names["assignment"], names["student"]
                )
            except MissingEntry:
                return nb, resources
            for grade in submission.grades:
                grade.auto_score = None
                grade.needs_manual_grade = True
            gradebook.db.commit()
        return nb, resources


class GradeInBox(NbGraderPreprocessor):
    """Grades every exercise of a rebuilt notebook, each in a fork of the box's warm process."""

    seed = Integer(0, help="Seed of all inputs. 0, the default, draws a secret one.").tag(
        config=True
    )
    trust_submissions = Bool(
        False,
        help="Run submissions without a sandbox. For code that is as good as your own.",
    ).tag(config=True)
    cpu_seconds = Float(
        Budget.cpu_seconds, help="Processor time that one exercise of one submission may use."
    ).tag(config=True)
    wall_seconds = Float(
        Budget.wall_seconds, help="How long one answer of a submission's code is waited for."
    ).tag(config=True)
    memory_mib = Integer(
        Budget.memory_bytes // MIB, help="Memory of one exercise with all its processes, in MiB."
    ).tag(config=True)

    @property
    def budget(self) -> Budget:
        """What the code of one exercise may spend."""
        return Budget(
            cpu_seconds=self.cpu_seconds,
            wall_seconds=self.wall_seconds,
            memory_bytes=self.memory_mib * MIB,
        )

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Write a verdict into each grade cell, and keep the evidence."""
        run: Run = resources["undertorch"]
        names = resources["nbgrader"]
        store = Store(run.chapter.root, names["student"], run.chapter.id)
        store.begin()
        intake = nb.metadata.pop("undertorch_intake", {"notes": {}})
        programs = _programs(run.chapter, nb)
        verdicts: dict[str, Verdict] = {}
        for cell in nb.cells:
            cell.pop("outputs", None) if cell.cell_type != "code" else cell.update(outputs=[])
            if cell.cell_type == "code" and is_grade(cell) and not cell.metadata.nbgrader.solution:
                grade_id = cell.metadata.nbgrader.grade_id
                verdict = self._verdict(run, store, cell, programs, intake)
                verdicts[grade_id] = verdict
                cell.outputs = [_output(verdict)]
                cell.execution_count = 1
        resources["verdicts"] = verdicts
        header = {
            "student": names["student"],
            "chapter": run.chapter.id,
            "submission": _digest(nb),
            "seed": run.seed,
            "tier": run.tier,
            "intake": intake,
        }
        store.record(header, list(verdicts.values()))
        return nb, resources

    def _verdict(
        self,
        run: Run,
        store: Store,
        cell: NotebookNode,
        programs: Mapping[str, Attempt],
        intake: Mapping[str, Any],
    ) -> Verdict:
        call = _CALL.match(cell.source)
        notes = intake["notes"]
        try:
            if call is None:
                verdict, said = _plain(run, cell, programs), ()
            else:
                exercise = run.chapter.exercise(call.group(1))
                said = tuple(notes.get(exercise.id, ()))
                if "unreadable" in intake:
                    message = Message(f"Your submission could not be read: {intake['unreadable']}.")
                    verdict = without_checks(
                        exercise, Outcome.NEEDS_REVIEW, message, "The submission is unreadable."
                    )
                else:
                    verdict, replies = run.grader(exercise.id).interview(
                        programs[exercise.id], run.box.open, run.seed, run.box.open
                    )
                    store.keep(exercise.id, replies)
        except Exception as error:  # whatever it was, the submission must not vanish
            self.log.exception("Grading %s failed", cell.metadata.nbgrader.grade_id)
            return _needs_review(cell, f"The grader itself failed: {type(error).__name__}: {error}")
        everywhere = tuple(notes.get("", ()))
        review = verdict.review or (" ".join(everywhere) if everywhere else "")
        return replace(verdict, notes=(*said, *everywhere), review=review, tier=run.tier)


class SaveVerdicts(SaveAutoGrades):
    """nbgrader's step that stores scores; it adds which need a person's eye, and why."""

    def _add_score(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        super()._add_score(cell, resources)
        verdict = resources.get("verdicts", {}).get(cell.metadata.nbgrader.grade_id)
        if verdict is not None and verdict.review:
            grade = self._find(self.gradebook.find_grade, cell)
            grade.needs_manual_grade = True
            self.gradebook.db.commit()

    def _add_comment(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        super()._add_comment(cell, resources)
        grade_id = f"{cell.metadata.nbgrader.grade_id}-grade"
        verdict = resources.get("verdicts", {}).get(grade_id)
        if verdict is not None and verdict.review:
            comment = self._find(self.gradebook.find_comment, cell)
            comment.auto_comment = f"Needs review. {verdict.review}"
            self.gradebook.db.commit()

    def _find(self, find: Any, cell: NotebookNode) -> Any:
        return find(
            cell.metadata.nbgrader.grade_id, self.notebook_id, self.assignment_id, self.student_id
        )


def _programs(chapter: Chapter, nb: NotebookNode) -> dict[str, Attempt]:
    """Return the attempt at each exercise that a rebuilt notebook holds."""
    cells = []
    for number, cell in enumerate(nb.cells):
        role = cell.metadata.get("nbgrader", {})
        if cell.cell_type != "code" or role.get("grade"):
            continue
        if role.get("solution"):
            cells.append(Cell(Kind.SOLUTION, role["grade_id"], cell.source))
        else:
            own = str(cell.get("id", "")).startswith("own-")
            label = f"your cell {int(cell.id[4:]) + 1}" if own else f"given cell {number}"
            cells.append(Cell(Kind.OWN if own else Kind.GIVEN, label, cell.source))
    names = [exercise.id for exercise in chapter.exercises]
    sources = {cell.label: cell.source for cell in cells if cell.kind is Kind.SOLUTION}
    return {
        name: Attempt(slice_program(name, names, cells), sources.get(name, "")) for name in names
    }


def _plain(run: Run, cell: NotebookNode, programs: Mapping[str, Attempt]) -> Verdict:
    """Run a hand-written test cell in the box, after everything that the student wrote.

    Its text is beside the student's code, which could tamper with it: weaker than a probe.
    """
    points = float(cell.metadata.nbgrader.points)
    name = str(cell.metadata.nbgrader.grade_id)
    parts = dict(part for attempt in programs.values() for part in attempt.program.parts)
    interview = Interview(run.box.open(), (), run.seed)
    raised: Raised | None
    try:
        interview.load(Program(name, tuple(parts.items())))
        raised = interview.run_plain(source_of(cell))
    except Ended as ended:
        return Verdict(name, name, 0.0, points, ended.outcome, Message(ended.detail))
    finally:
        interview.close()
    if raised is None:
        return Verdict(name, name, points, points, Outcome.PASSED)
    return Verdict(name, name, 0.0, points, Outcome.FAILED, raised_message(raised))


def _needs_review(cell: NotebookNode, why: str) -> Verdict:
    name, points = str(cell.metadata.nbgrader.grade_id), float(cell.metadata.nbgrader.points)
    message = Message("This could not be graded. It is not your fault until someone says so.")
    return Verdict(name, name, 0.0, points, Outcome.NEEDS_REVIEW, message, review=why)


def _output(verdict: Verdict) -> NotebookNode:
    bundle = Report(verdict)._repr_mimebundle_()
    return new_output("execute_result", data=bundle, execution_count=1)


def _digest(nb: NotebookNode) -> str:
    text = "\0".join(cell.source for cell in nb.cells)
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()
