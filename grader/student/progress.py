"""How far a student has come: their saved answers, and what the journal says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from grader.course.course import Chapter, Course, CourseError
from grader.student import journal
from grader.student.folder import Folder
from grader.student.work import read_work

PASSED, TRIED, UNCHECKED, NOT_BEGUN = "passed", "tried", "not checked", "not begun"


@dataclass(frozen=True)
class Row:
    """One exercise. `state` is one of the four; points are those of the answer as it stands."""

    exercise: str
    title: str
    state: str
    points: float
    max_points: float
    hints: int = 0
    solution: bool = False


@dataclass(frozen=True)
class Progress:
    """One chapter. `trouble` is why its notebook could not be read, if it could not."""

    chapter: str
    title: str
    rows: tuple[Row, ...]
    trouble: str = ""

    def count(self, *states: str) -> int:
        """Return how many exercises are in one of these states."""
        return sum(row.state in states for row in self.rows)

    @property
    def points(self) -> float:
        """Points of the answers as they stand."""
        return sum(row.points for row in self.rows)

    @property
    def max_points(self) -> float:
        """Points of the whole chapter."""
        return sum(row.max_points for row in self.rows)

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            **asdict(self),
            "points": self.points,
            "max_points": self.max_points,
            "passed": self.count(PASSED),
            "tried": self.count(TRIED, UNCHECKED),
            "not_begun": self.count(NOT_BEGUN),
        }


def progress(course: Course, folder: Folder) -> list[Progress]:
    """Return how far the student is in each chapter. Runs nothing."""
    log = journal.read(folder.root)
    return [_progress(folder, chapter, log) for chapter in course.chapters()]


def _progress(folder: Folder, chapter: Chapter, log: Sequence[journal.Entry]) -> Progress:
    trouble, states = "", {}
    if folder.notebook(chapter).exists():
        try:
            work = read_work(chapter, folder.notebook(chapter))
        except CourseError as error:
            trouble = str(error)
        else:
            for exercise in chapter.exercises:
                source = work.attempts[exercise.id].source
                if work.written(exercise.id):
                    states[exercise.id] = _state(exercise.id, journal.answer_digest(source), log)
    rows = []
    for exercise in chapter.exercises:
        state, points = states.get(exercise.id, (NOT_BEGUN, 0.0))
        seen = [entry for entry in log if entry.exercise == exercise.id]
        hints = len({entry.number for entry in seen if entry.kind == "hint"})
        solution = any(entry.kind == "solution" for entry in seen)
        rows.append(
            Row(exercise.id, exercise.title, state, points, exercise.points, hints, solution)
        )
    title = str(chapter.card.get("title", chapter.id))
    return Progress(chapter.id, title, tuple(rows), trouble)


def _state(exercise: str, answer: str, log: Sequence[journal.Entry]) -> tuple[str, float]:
    """Return what the last verdict on this very answer was."""
    for entry in reversed(log):
        if (entry.kind, entry.exercise, entry.answer) == ("verdict", exercise, answer):
            return (PASSED if entry.outcome == "passed" else TRIED), entry.points
    return UNCHECKED, 0.0
