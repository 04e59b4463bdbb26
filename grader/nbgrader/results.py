"""What the gradebook says of a class: who is in it, what was handed in and when, which points stand.

A score given by hand counts before ours, as everywhere in nbgrader. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from nbgrader.api import (
    Assignment,
    BaseCell,
    Grade,
    Gradebook,
    GradeCell,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy.engine import make_url

from grader.course.course import CourseError
from grader.evidence.store import Store
from grader.nbgrader.commands import autograde_app
from grader.nbgrader.gradebook import must_open, said_in_words, total
from grader.nbgrader.resubmitted import read_record


@dataclass(frozen=True)
class Person:
    """A student as the gradebook knows one; what it does not know is empty."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_user_id: str = ""

    @property
    def name(self) -> str:
        """First and last name; empty if neither is known."""
        return f"{self.first_name} {self.last_name}".strip()

    @property
    def sortable_name(self) -> str:
        """`Last, First`, as learning management systems sort; the id if no name is known."""
        return ", ".join(part for part in (self.last_name, self.first_name) if part) or self.id


@dataclass(frozen=True)
class Cell:
    """One grade cell of a submission. `points` is None where nobody knows them yet."""

    points: float | None
    by_hand: bool
    needs_review: bool


@dataclass
class HandedIn:
    """One submission: its cells by grade id, seconds late, points that lateness costs, when it was
    handed in (UTC), if that is known.
    """

    late_seconds: float
    penalty: float = 0.0
    cells: dict[str, Cell] = field(default_factory=dict)
    timestamp: datetime | None = None

    @property
    def raw(self) -> float | None:
        """All points, lateness apart; None while a cell has none."""
        return total((cell.points for cell in self.cells.values()), 0.0)

    @property
    def points(self) -> float | None:
        """All points, lateness counted; None while a cell has none."""
        return total((cell.points for cell in self.cells.values()), self.penalty)

    @property
    def noted(self) -> bool:
        """Is there a note for a person, beside points that stand?"""
        return self.points is not None and any(one.needs_review for one in self.cells.values())


@dataclass(frozen=True)
class ChapterResults:
    """A class in one chapter. `handed_in` is by student id; who handed in nothing is not in it."""

    people: tuple[Person, ...]
    handed_in: dict[str, HandedIn]
    max_points: float
    due: datetime | None = None


@contextmanager
def open_gradebook(root: Path) -> Iterator[Gradebook]:
    """Open the course's gradebook.

    Raises `CourseError` if it cannot be opened, or there is none: opening would make it.
    """
    directory = autograde_app(root, "").coursedir
    url = make_url(directory.db_url)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise CourseError(
            f"There is no gradebook at {url.database}: nothing is graded yet. "
            "Run: undertorch grade CHAPTER"
        )
    must_open(directory.db_url)
    with (
        said_in_words(),
        Gradebook(directory.db_url, directory.course_id) as gradebook,
    ):
        yield gradebook


def read_results(gradebook: Gradebook, chapter: str) -> ChapterResults:
    """Return what a class has in a chapter: three queries, however large the class."""
    people = gradebook.db.query(
        Student.id, Student.first_name, Student.last_name, Student.email, Student.lms_user_id
    )
    handed_in = _handed_in(gradebook, chapter)
    _add_cells(gradebook, chapter, handed_in)
    known = gradebook.db.query(Assignment).filter(Assignment.name == chapter).one_or_none()
    return ChapterResults(
        tuple(Person(*(value or "" for value in row)) for row in people.order_by(Student.id)),
        handed_in,
        float(known.max_score) if known else 0.0,
        known.duedate if known else None,
    )


def judged_for_other_points(
    gradebook: Gradebook, root: Path, chapter: str, students: Iterable[str]
) -> list[str]:
    """Return whose verdicts were given when an exercise of a chapter was worth something else."""
    worth = {cell.name: cell.max_score for cell in _grade_cells(gradebook, chapter)}
    found = []
    for student in students:
        record = read_record(Store(root, student, chapter)) or {"verdicts": ()}
        given = {f"{one['exercise']}-grade": one["max_points"] for one in record["verdicts"]}
        if any(worth.get(name, points) != points for name, points in given.items()):
            found.append(student)
    return found


def _grade_cells(gradebook: Gradebook, chapter: str) -> Iterator[GradeCell]:
    for notebook in gradebook.find_assignment(chapter).notebooks:
        yield from notebook.grade_cells


def _handed_in(gradebook: Gradebook, chapter: str) -> dict[str, HandedIn]:
    rows = (
        gradebook.db.query(
            SubmittedAssignment.student_id,
            SubmittedAssignment.timestamp,
            SubmittedAssignment.extension,
            Assignment.duedate,
        )
        .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
        .filter(Assignment.name == chapter)
    )
    found = {}
    for student, handed, extension, due in rows:
        late = 0.0
        if handed is not None and due is not None:
            due = due + extension if extension is not None else due
            late = max(0.0, (handed - due).total_seconds())
        found[student] = HandedIn(late, timestamp=handed)
    return found


def _add_cells(gradebook: Gradebook, chapter: str, handed_in: dict[str, HandedIn]) -> None:
    rows = (
        gradebook.db.query(
            SubmittedAssignment.student_id,
            SubmittedNotebook.id,
            SubmittedNotebook.late_submission_penalty,
            BaseCell.name,
            Grade.auto_score,
            Grade.manual_score,
            Grade.extra_credit,
            Grade.needs_manual_grade,
        )
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
        .join(Grade, Grade.notebook_id == SubmittedNotebook.id)
        .join(BaseCell, Grade.cell_id == BaseCell.id)
        .filter(Assignment.name == chapter)
    )
    notebooks = set()
    for student, notebook, penalty, name, automatic, manual, extra, review in rows:
        submission = handed_in[student]
        if notebook not in notebooks:
            notebooks.add(notebook)
            submission.penalty += penalty or 0.0
        points = automatic if manual is None else manual
        if points is not None:
            points += extra or 0.0
        submission.cells[name] = Cell(points, manual is not None, bool(review))
