"""How far a student has come: their answers as they stand, and what the journal says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from grader.course.course import Chapter, Course, CourseError
from grader.course.exercise import in_hours
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
    minutes: int
    difficulty: int
    short: bool
    hints: int = 0
    solution: bool = False

    @property
    def level(self) -> str:
        """Its difficulty, of five."""
        return "●" * self.difficulty + "○" * (5 - self.difficulty)


@dataclass(frozen=True)
class Part:
    """One sitting: its question, and the ids of its exercises."""

    id: str
    number: int
    question: str
    exercises: tuple[str, ...]


@dataclass(frozen=True)
class Progress:
    """One chapter. `trouble` is why its notebook could not be read, if it could not."""

    chapter: str
    title: str
    rows: tuple[Row, ...]
    sittings: tuple[Part, ...] = ()
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

    @property
    def minutes(self) -> int:
        """How long the chapter takes."""
        return sum(row.minutes for row in self.rows)

    @property
    def short(self) -> tuple[Row, ...]:
        """The exercises of the short path; none if that is the whole chapter."""
        found = tuple(row for row in self.rows if row.short)
        return () if len(found) == len(self.rows) else found

    def parts(self) -> Iterator[tuple[Part | None, tuple[Row, ...]]]:
        """Yield the sittings with their exercises; all in one if there are no sittings."""
        if not self.sittings:
            yield None, self.rows
        for part in self.sittings:
            yield part, tuple(row for row in self.rows if row.exercise in part.exercises)

    def of(self, exercises: Sequence[str]) -> Progress:
        """Return the progress in these exercises alone; in all, if there are none."""
        if not exercises:
            return self
        rows = tuple(row for row in self.rows if row.exercise in exercises)
        left = [
            replace(part, exercises=tuple(e for e in part.exercises if e in exercises))
            for part in self.sittings
        ]
        parts = [part for part in left if part.exercises]
        numbered = (replace(part, number=number) for number, part in enumerate(parts, 1))
        return replace(self, rows=rows, sittings=tuple(numbered))

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            **asdict(self),
            "points": self.points,
            "max_points": self.max_points,
            "minutes": self.minutes,
            "passed": self.count(PASSED),
            "tried": self.count(TRIED, UNCHECKED),
            "not_begun": self.count(NOT_BEGUN),
        }


def sums(found: Sequence[Progress]) -> str:
    """Say how far a student is in these chapters, in one line."""
    rows = [row for one in found for row in one.rows]
    passed = sum(row.state == PASSED for row in rows)
    points, most = sum(row.points for row in rows), sum(row.max_points for row in rows)
    return f"{passed} of {len(rows)} exercises passed, {points:g} of {most:g} points"


def extent(found: Sequence[Progress]) -> str:
    """Say how much these chapters are, and how much their short path, in one line."""
    rows = [row for one in found for row in one.rows]
    short = [row for one in found for row in one.short]
    sittings = sum(len(one.sittings) for one in found)
    text = f"About {in_hours(sum(row.minutes for row in rows))}"
    if sittings:
        text += f" in {sittings} sittings"
    if short:
        passed = sum(row.state == PASSED for row in short)
        time = in_hours(sum(row.minutes for row in short))
        text += f". The short path (★) is about {time}: {passed} of {len(short)} exercises passed"
    return text


def progress(course: Course, folder: Folder) -> list[Progress]:
    """Return how far the student is in each chapter. Runs nothing."""
    log = journal.read(folder.root)
    return [chapter_progress(chapter, log, folder) for chapter in course.chapters()]


def chapter_progress(
    chapter: Chapter, log: Sequence[journal.Entry], folder: Folder | None = None
) -> Progress:
    """Return how far the student is in one chapter; without a folder, by the journal alone."""
    saved = _Saved({}, 0.0)
    if folder is not None and folder.notebook(chapter).exists():
        saved = _saved(chapter, folder.notebook(chapter))
    rows = []
    for exercise in chapter.exercises:
        seen = [entry for entry in log if entry.exercise == exercise.id]
        state, points = _state(saved, exercise.id, seen)
        rows.append(
            Row(
                exercise.id,
                exercise.title,
                state,
                points,
                exercise.points,
                exercise.minutes,
                exercise.difficulty,
                exercise.short,
                hints=len({entry.number for entry in seen if entry.kind == "hint"}),
                solution=any(entry.kind == "solution" for entry in seen),
            )
        )
    parts = tuple(
        Part(one.id, one.number, one.question, tuple(each.id for each in one.exercises))
        for one in chapter.sittings
    )
    title = str(chapter.card.get("title", chapter.id))
    return Progress(chapter.id, title, tuple(rows), parts, saved.trouble)


@dataclass(frozen=True)
class _Saved:
    """What is saved of a chapter: digests of the answers that are more than a stub, and since when."""

    answers: Mapping[str, str]
    when: float
    trouble: str = ""


def _saved(chapter: Chapter, path: Path) -> _Saved:
    """Read a notebook and the answers in files beside it, if they changed since they were read."""
    files = [path, *sorted(path.parent.glob("*.py"))]
    stamp = tuple((file.name, file.stat().st_mtime_ns) for file in files)
    return _read_saved(chapter, path, stamp)


@lru_cache(maxsize=64)  # a kernel asks at every grade, and mostly nothing was saved meanwhile
def _read_saved(chapter: Chapter, path: Path, stamp: tuple[tuple[str, int], ...]) -> _Saved:
    when = max(time for _, time in stamp) / 1e9
    if len(stamp) == 1 and path.read_bytes() == chapter.released.read_bytes():
        return _Saved({}, when)  # most chapters of most students: a tenth of a second each
    try:
        work = read_work(chapter, path)
    except CourseError as error:
        return _Saved({}, when, str(error))
    answers = {
        name: journal.answer_digest(attempt.source)
        for name, attempt in work.attempts.items()
        if work.written(name)
    }
    return _Saved(answers, when)


def _state(saved: _Saved, exercise: str, seen: Sequence[journal.Entry]) -> tuple[str, float]:
    """Return the last verdict on the answer as it stands.

    That is the saved one, or one that a notebook graded since and that is not saved yet.
    """
    verdicts = [entry for entry in reversed(seen) if entry.kind == "verdict"]
    if verdicts and verdicts[0].by == "notebook" and verdicts[0].when > saved.when:
        return _judged(verdicts[0])
    if exercise not in saved.answers:
        return NOT_BEGUN, 0.0
    for entry in verdicts:
        if entry.answer == saved.answers[exercise]:
            return _judged(entry)
    return UNCHECKED, 0.0


def _judged(verdict: journal.Entry) -> tuple[str, float]:
    return (PASSED if verdict.outcome == "passed" else TRIED), verdict.points
