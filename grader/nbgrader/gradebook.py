"""What is written to nbgrader's gradebook for one submission, in one transaction each.

The rows are those that nbgrader's own SaveAutoGrades and AssignLatePenalties write, and beside them
which grades need a person's eye, and why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution, is_task
from sqlalchemy.exc import OperationalError

from grader.core.verdict import Verdict
from grader.nbgrader.late import penalize

LOCK_SECONDS = 30.0
"""How long somebody else may hold the gradebook, a formgrader's save or a backup, before we stop."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class Place:
    """Where a submission's rows are."""

    assignment: str
    notebook: str
    student: str


@dataclass(frozen=True)
class Marks:
    """A graded notebook's score and review flag by grade cell, and comments by solution cell."""

    scores: Mapping[str, tuple[float | None, bool]]
    comments: Mapping[str, str | None]


def marks_of(nb: NotebookNode, verdicts: Mapping[str, Verdict]) -> Marks:
    """Return what the gradebook is to hold of a graded notebook."""
    scores: dict[str, tuple[float | None, bool]] = {}
    comments: dict[str, str | None] = {}
    for cell in nb.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if is_grade(cell):
            verdict = verdicts.get(name)
            scores[name] = determine_grade(cell)[0], bool(verdict and verdict.review)
        if is_solution(cell) or is_task(cell):
            untouched = cell.metadata.nbgrader.get("checksum") == compute_checksum(cell)
            comments[name] = "No response." if untouched and not is_task(cell) else None
            verdict = verdicts.get(f"{name}-grade")
            if verdict is not None and verdict.review:
                comments[name] = f"Needs review. {verdict.review}"
    return Marks(scores, comments)


def forget(gradebook: Gradebook, place: Place) -> None:
    """Mark every grade of a submission as not known: after a failure no old score may stay."""
    try:
        submitted = gradebook.find_submission_notebook(
            place.notebook, place.assignment, place.student
        )
    except MissingEntry:
        return
    for grade in submitted.grades:
        grade.auto_score = None
        grade.needs_manual_grade = True
    gradebook.db.commit()


def save(gradebook: Gradebook, place: Place, marks: Marks, late: AssignLatePenalties) -> None:
    """Write scores, comments and the late penalty of a submission that has its rows."""
    submitted = gradebook.find_submission_notebook(place.notebook, place.assignment, place.student)
    with gradebook.db.no_autoflush:
        # one query for all cells, held while each row's name is asked for: not one query a row
        cells = submitted.notebook.grade_cells + submitted.notebook.solution_cells
        for grade in submitted.grades:
            if grade.name in marks.scores:
                grade.auto_score, review = marks.scores[grade.name]
                # what a person gave or must give is looked at again, as nbgrader has it
                unsure = grade.manual_score is not None or grade.auto_score is None
                grade.needs_manual_grade = unsure or review
        for comment in submitted.comments:
            if comment.name in marks.comments:
                comment.auto_comment = marks.comments[comment.name]
        del cells
    penalize(gradebook, submitted, late)
    gradebook.db.commit()


@contextmanager
def one_transaction(gradebook: Gradebook) -> Iterator[None]:
    """Let all that is done in the block take effect at its end, or not at all.

    nbgrader's own calls commit one by one; in here their commits only flush.
    """
    session = gradebook.db
    commit = session.commit
    session.commit = session.flush
    try:
        yield
        commit()
    except BaseException:
        session.rollback()
        raise
    finally:
        del session.commit
        session.expunge_all()  # a class of a thousand must not pile up in memory


class GradebookBusy(Exception):
    """Somebody else held the gradebook for too long."""


def in_one_transaction(gradebook: Gradebook, action: Callable[[], _T]) -> _T:
    """Do `action` in one transaction; while the database is locked, again, up to LOCK_SECONDS."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            with one_transaction(gradebook):
                return action()
        except OperationalError as error:
            if "locked" not in str(error):
                raise
            if time.monotonic() > deadline:
                raise GradebookBusy(
                    f"The gradebook was locked by another program for {LOCK_SECONDS:g} s"
                ) from None
