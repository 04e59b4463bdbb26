"""What an instructor's course folder has in its gradebook: assignments, due dates, students."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import capture_log

from grader.course.course import CourseError
from grader.nbgrader.commands import autograde_app
from grader.nbgrader.dropped import FIELDS, drop, dropped_from, person_of, rejoin
from grader.nbgrader.gradebook import in_one_transaction
from grader.nbgrader.late import penalize


@dataclass(frozen=True)
class Penalty:
    """A late penalty that became another, in points."""

    student: str
    chapter: str
    before: float
    after: float


@dataclass(frozen=True)
class Student:
    """One row of a roster; "" is what is not known, None what a roster does not speak of.

    `lms_user_id` is the number that the learning management system has for the student.
    """

    id: str
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    lms_user_id: str | None = None

    def __str__(self) -> str:
        """Return who it is: the id, and what else tells a person to a person."""
        name = " ".join(filter(None, [self.first_name, self.last_name]))
        known = ", ".join(filter(None, [name, self.email]))
        return f"{self.id} ({known})" if known else self.id


class CourseBook:
    """A course folder's gradebook, under the settings of its nbgrader_config.py."""

    def __init__(self, folder: Path) -> None:
        self._app = autograde_app(folder, "")
        self._directory = self._app.coursedir

    def generate(self, chapter: str) -> None:
        """Write `release/<chapter>/` by nbgrader's generate_assignment. Raises `CourseError`."""
        self._directory.assignment_id = chapter
        step = GenerateAssignment(coursedir=self._directory, parent=self._app)
        step.force = step.create_assignment = True
        result = capture_log(step)
        if not result["success"]:
            said = result.get("log") or result.get("error", "")
            raise CourseError(f"nbgrader generate_assignment {chapter} failed:\n{said}")

    def is_registered(self, chapter: str, notebook: str) -> bool:
        """Say whether the gradebook knows a chapter's notebook."""
        return self._notebook(chapter, notebook) is not None

    def refuse_other_cells(self, chapter: str, notebook: str, exercises: Sequence[str]) -> None:
        """Raise `CourseError` if submissions of the chapter have other exercises than these."""
        points, graded = self._notebook(chapter, notebook) or ({}, 0)
        if not graded or points.keys() == {f"{name}-grade" for name in exercises}:
            return
        now = ", ".join(sorted(name.removesuffix("-grade") for name in points))
        raise CourseError(
            f"{chapter} has {graded} graded submissions with the exercises {now}. nbgrader "
            "cannot add or remove exercises after that; points and due dates may change. Put "
            f"these exercises back into the file, or take all grades of the chapter away with: "
            f"nbgrader db assignment remove {chapter} --force"
        )

    def points(self, chapter: str, notebook: str) -> dict[str, float]:
        """Return what each grade cell of a chapter is worth in the gradebook; empty if unknown."""
        points, _ = self._notebook(chapter, notebook) or ({}, 0)
        return points

    def _notebook(self, chapter: str, notebook: str) -> tuple[dict[str, float], int] | None:
        """Return what a notebook's grade cells are worth, and how many submissions it has; None if unknown."""
        with self._open() as gradebook:
            try:
                found = gradebook.find_notebook(notebook, chapter)
            except MissingEntry:
                return None
            points = {cell.name: float(cell.max_score) for cell in found.grade_cells}
            return points, len(found.submissions)

    def set_due(self, chapter: str, due: datetime | None) -> bool:
        """Write a chapter's due date (UTC); return whether it was another."""
        with self._open() as gradebook:
            assignment = gradebook.find_assignment(chapter)
            changed = bool(assignment.duedate != due)
            assignment.duedate = due
            gradebook.db.commit()
        return changed

    def penalize_again(self, chapters: Sequence[str]) -> list[Penalty]:
        """Write all late penalties of graded submissions anew; return those that changed."""
        late = AssignLatePenalties(parent=self._app)
        with self._open() as gradebook:
            return list(
                in_one_transaction(gradebook, lambda: list(_penalties(gradebook, chapters, late)))
            )

    def students(self) -> dict[str, Student]:
        """Return who is in the gradebook, by id."""
        with self._open() as gradebook:
            return {
                row.id: Student(row.id, *(getattr(row, name) or "" for name in FIELDS))
                for row in gradebook.students
            }

    def update(self, students: Sequence[Student]) -> None:
        """Add or change students as `nbgrader db student import` does, all or none."""
        with self._open() as gradebook:
            in_one_transaction(gradebook, lambda: _update(gradebook, students))

    def dropped(self) -> list[str]:
        """Return who was dropped, in order."""
        return dropped_from(Path(self._directory.root))

    def dropped_students(self) -> dict[str, Student]:
        """Return who was dropped, by id, as the gradebook knew them."""
        root = Path(self._directory.root)
        return {id: Student(id, **person_of(root, id)) for id in self.dropped()}

    def drop(self, students: Sequence[str]) -> None:
        """Take students and all that is theirs out of the course. Raises `CourseError`."""
        with self._open() as gradebook:
            known = {row.id for row in gradebook.students}
            unknown = [id for id in students if id not in {*known, *self.dropped()}]
            if unknown:
                raise CourseError(f"No student has the id {unknown[0]}. Nothing was changed.")
            for id in students:
                drop(gradebook, Path(self._directory.root), id)

    def rejoin(self, students: Sequence[str]) -> list[str]:
        """Bring dropped students back; return in words what could not be. Raises `CourseError`."""
        unknown = [id for id in students if id not in self.dropped()]
        if unknown:
            some = ", ".join(self.dropped()) or "nobody"
            raise CourseError(f"{unknown[0]} was not dropped. Dropped are: {some}.")
        with self._open() as gradebook:
            return [
                line
                for id in students
                for line in rejoin(gradebook, Path(self._directory.root), id)
            ]

    def _open(self) -> Gradebook:
        return Gradebook(self._directory.db_url, self._directory.course_id)


def _penalties(
    gradebook: Gradebook, chapters: Sequence[str], late: AssignLatePenalties
) -> Iterator[Penalty]:
    for chapter in chapters:
        try:
            submissions = gradebook.assignment_submissions(chapter)
        except MissingEntry:
            continue
        for submission in submissions:
            for notebook in submission.notebooks:
                before = notebook.late_submission_penalty or 0.0
                penalize(gradebook, notebook, late)
                after = notebook.late_submission_penalty or 0.0
                if before != after:
                    yield Penalty(submission.student.id, chapter, before, after)


def _update(gradebook: Gradebook, students: Sequence[Student]) -> None:
    for student in students:
        said = {name: getattr(student, name) for name in FIELDS}
        known = {name: value or None for name, value in said.items() if value is not None}
        gradebook.update_or_create_student(student.id, **known)
