"""nbgrader's steps for grading: forget the last scores, grade in the box, save the new ones."""

from __future__ import annotations

import secrets
from typing import Any

from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import AssignLatePenalties, NbGraderPreprocessor
from traitlets import Bool, Float, Integer, Unicode

from grader.box.tiers import choose
from grader.course.course_file import Counts
from grader.evidence.store import Store
from grader.inside.process.budget import MIB, Budget
from grader.nbgrader.gradebook import Place, forget, in_one_transaction, marks_of, save
from grader.nbgrader.run import Graded, Run, Terms, grade_notebook


class ResetScores(NbGraderPreprocessor):  # type: ignore[misc]  # nbgrader is untyped
    """First of all forget the last grading: after a failure no old score may stay."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Mark every grade of this submission as not known."""
        with Gradebook(resources["nbgrader"]["db_url"]) as gradebook:
            in_one_transaction(gradebook, lambda: forget(gradebook, _place(resources)))
        return nb, resources


class GradeInBox(NbGraderPreprocessor):  # type: ignore[misc]  # nbgrader is untyped
    """Grades every exercise of a rebuilt notebook, each in a fork of the box's warm process."""

    seed = Integer(0, help="Seed of all inputs. 0, the default, draws a secret one.").tag(
        config=True
    )
    trust_submissions = Bool(
        False,
        help="Run submissions without a sandbox. For code that is as good as your own.",
    ).tag(config=True)
    counts = Unicode(
        Counts.LATEST.value, help="Which of a student's submissions counts: latest, best or first."
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

    def terms(self) -> Terms:
        """Return the terms of one run; draws its seed."""
        tier = choose(trust=self.trust_submissions)
        return Terms(self.seed or secrets.randbits(48), self.budget, tier)

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Write a verdict into each grade cell, and keep the evidence."""
        run: Run = resources["undertorch"]
        store = _store(resources)
        store.begin()
        graded = grade_notebook(run, nb)
        for grade_id, replies in graded.replies.items():
            store.keep(grade_id, replies)
        store.keep_seconds(graded.seconds)
        resources["graded"] = graded
        return graded.notebook, resources


class SaveVerdicts(NbGraderPreprocessor):  # type: ignore[misc]  # nbgrader is untyped
    """Stores scores, comments and the late penalty, and which grades need a person's eye."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Write the gradebook's rows, then the record that says so."""
        graded: Graded = resources["graded"]
        marks, late = marks_of(nb, graded.verdicts), AssignLatePenalties(parent=self.parent)
        with Gradebook(resources["nbgrader"]["db_url"]) as gradebook:
            in_one_transaction(gradebook, lambda: save(gradebook, _place(resources), marks, late))
        _store(resources).record(graded.record)
        return nb, resources


def _place(resources: dict[str, Any]) -> Place:
    names = resources["nbgrader"]
    return Place(names["assignment"], names["notebook"], names["student"])


def _store(resources: dict[str, Any]) -> Store:
    names = resources["nbgrader"]
    return Store(resources["undertorch"].chapter.root, names["student"], names["assignment"])
