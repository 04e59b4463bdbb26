"""nbgrader exporters: for learning management systems,

    nbgrader export --exporter=grader.nbgrader.exports.CanvasExporter
    nbgrader export --exporter=grader.nbgrader.exports.MoodleExporter

and the one that `nbgrader export` takes by itself where our settings apply. Points that nobody knows
yet (a submission that needs review) and work that was not handed in are left empty, never 0: a person
decides what they are worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.plugins import ExportPlugin
from traitlets import Unicode

from grader.files import write_atomically
from grader.nbgrader.naming import names
from grader.nbgrader.results import (
    ChapterResults,
    HandedIn,
    Person,
    judged_for_other_points,
    read_results,
)
from grader.nbgrader.spreadsheet import Value, csv_text

MOODLE_MOST = 100.0
"""Moodle's import refuses a grade above this, unless the site allows it (`unlimitedgrades`)."""


class _Exporter(ExportPlugin):  # type: ignore[misc]  # nbgrader is untyped
    """Writes one CSV file of all chapters, or of those that `--assignment` names."""

    destination = ""
    root: Path | None = None
    """Where the course is, if not the one whose `nbgrader export` this is."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.warnings: list[str] = []

    def rows(
        self, people: Sequence[Person], by_chapter: dict[str, ChapterResults]
    ) -> Iterator[Sequence[Value]]:
        """Yield the file's rows."""
        raise NotImplementedError

    def export(self, gradebook: Gradebook) -> None:
        """Write the file: to `--to`, or beside the gradebook's configuration."""
        known = [assignment.name for assignment in gradebook.assignments]
        chosen = [name for name in known if not self.assignment or name in self.assignment]
        unknown = sorted(set(map(str, self.assignment)) - set(known))
        if unknown:
            self._warn(f"The gradebook has no assignment {', '.join(unknown)}.")
        by_chapter = {name: read_results(gradebook, name) for name in sorted(chosen)}
        wanted = set(map(str, self.student))
        people = [
            person
            for person in (next(iter(by_chapter.values())).people if by_chapter else ())
            if not wanted or person.id in wanted
        ]
        path = Path(self.to or self.destination)
        write_atomically(path, csv_text(self.rows(people, by_chapter)), private=True)
        for name, results in by_chapter.items():
            if left := [id for id, one in results.handed_in.items() if one.points is None]:
                self._warn(f"{name}: left empty, for nobody has scored all of it: {names(left)}.")
            if noted := [id for id, one in results.handed_in.items() if one.noted]:
                self._warn(f"{name}: with points, and a note for a person: {names(noted)}.")
            root = self.root or (Path(self.parent.coursedir.root) if self.parent else None)
            if root is not None and (
                old := judged_for_other_points(gradebook, root, name, results.handed_in)
            ):
                self._warn(
                    f"{name}: judged when exercises were worth other points: {names(old)}. "
                    f"First: undertorch regrade {name}"
                )
        self.log.info("Exported %d students, %d assignments to %s", len(people), len(chosen), path)

    def _warn(self, what: str) -> None:
        self.warnings.append(what)
        self.log.warning(what)


class CsvExporter(_Exporter):
    """The file of nbgrader's own exporter, column by column, but empty where there are no points.

    nbgrader writes 0 for what nobody has scored and for what was not handed in, and names as students
    gave them: `=1+1` is computed where the file is opened.
    """

    destination = "grades.csv"

    def rows(
        self, people: Sequence[Person], by_chapter: dict[str, ChapterResults]
    ) -> Iterator[Sequence[Value]]:
        """Yield the header, then each chapter's students."""
        yield [
            "assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email",
            "raw_score", "late_submission_penalty", "score", "max_score",
        ]  # fmt: skip
        for name, results in by_chapter.items():
            for person in people:
                one = results.handed_in.get(person.id)
                yield [
                    name, _time(results.due), _time(one.timestamp if one else None), person.id,
                    person.last_name, person.first_name, person.email,
                    one.raw if one else None,
                    one.penalty if one and one.points is not None else None,
                    one.points if one else None, results.max_points,
                ]  # fmt: skip


def _time(when: datetime | None) -> str:
    return str(when) if when else ""


class CanvasExporter(_Exporter):
    """A file for Canvas: Grades, Import.

    Canvas finds a student by `ID`, its own number (nbgrader's `lms_user_id`), else by `SIS User ID`
    or `SIS Login ID` (the student's id here), else by name.
    """

    destination = "canvas.csv"
    section = Unicode("", help="What the column Section holds; Canvas does not read it.").tag(
        config=True
    )

    def rows(
        self, people: Sequence[Person], by_chapter: dict[str, ChapterResults]
    ) -> Iterator[Sequence[Value]]:
        """Yield the header, the row `Points Possible`, then the students."""
        yield ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *by_chapter]
        most = [results.max_points for results in by_chapter.values()]
        yield ["Points Possible", "", "", "", "", *most]
        for person in people:
            who = [person.sortable_name, person.lms_user_id, person.id, person.id, self.section]
            yield [*who, *(points_of(results, person) for results in by_chapter.values())]


class MoodleExporter(_Exporter):
    """A file for Moodle: Grades, Import, CSV file.

    Map from `Email address`, `ID number` or `Username`, whichever your Moodle knows; map both the
    points and the feedback of a chapter to its grade item.
    """

    destination = "moodle.csv"

    def rows(
        self, people: Sequence[Person], by_chapter: dict[str, ChapterResults]
    ) -> Iterator[Sequence[Value]]:
        """Yield the header, then the students."""
        for name, results in by_chapter.items():
            if results.max_points > MOODLE_MOST:
                self._warn(
                    f"{name} has {results.max_points:g} points: Moodle refuses grades above "
                    f"{MOODLE_MOST:g} unless its administrator allows them (unlimitedgrades)."
                )
        chapters = [heading for name in by_chapter for heading in (name, f"{name} feedback")]
        yield ["First name", "Last name", "ID number", "Username", "Email address", *chapters]
        for person in people:
            number = person.lms_user_id or person.id
            row: list[Value] = [
                person.first_name, person.last_name, number, person.id, person.email,
            ]  # fmt: skip
            for results in by_chapter.values():
                row += [points_of(results, person), feedback(results.handed_in.get(person.id))]
            yield row


def points_of(results: ChapterResults, person: Person) -> float | None:
    """Return a person's points, lateness counted; None if there are none yet."""
    submission = results.handed_in.get(person.id)
    return None if submission is None else submission.points


def feedback(submission: HandedIn | None) -> str:
    """Return a line for the student. What is not graded gets none, and so replaces nothing."""
    if submission is None or submission.points is None:
        return ""
    full = sum(1 for cell in submission.cells.values() if cell.points)
    said = f"{full} of {len(submission.cells)} exercises have points."
    if submission.penalty:
        said += f" {submission.penalty:g} points off for being late."
    if any(cell.needs_review for cell in submission.cells.values()):
        said += " A person will look at it again."
    return said


EXPORTERS = {"canvas": CanvasExporter, "moodle": MoodleExporter}
"""By the name of the system that reads the file."""
