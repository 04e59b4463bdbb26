"""What a class report says of one chapter: counted, nothing shown yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from statistics import mean, median
from typing import Any

from grader.instructor.classroom import Classroom, GradedSubmission, Result

BINS = 10
"""Bars of the distribution: each a tenth of the points, the last with full marks."""

SLOW_SECONDS = 5.0
"""Nobody is called slow who answered within this; an honest exercise takes well under one second."""

SLOW_TIMES = 5.0
"""How many times its exercise's median a slow answer took, at least: a busy machine slows all."""

ENDED = ("crashed", "timed out", "out of memory", "killed")

GROUPS = (
    "passed",
    "some points",
    "no points",
    "not attempted",
    "ended early",
    "blocked",
    "unknown",
)
"""Into which of these each result falls, in this order."""


@dataclass(frozen=True)
class ExerciseTally:
    """How a class did in one exercise. `groups` counts submissions; `share` is 0 to 1, of points."""

    exercise: str
    title: str
    max_points: float
    groups: Mapping[str, int]
    share: float | None


@dataclass(frozen=True)
class MistakeTally:
    """Who made one known mistake. Without a diagnosis `mistake` is empty and `explanation` names the
    check that failed first.
    """

    exercise: str
    mistake: str
    explanation: str
    students: tuple[str, ...]


@dataclass(frozen=True)
class Event:
    """Something of one student's exercise that stands out; `seconds` where time is what does."""

    student: str
    exercise: str
    what: str
    seconds: float | None = None


@dataclass(frozen=True)
class ChapterReport:
    """One chapter's report. `bins` count submissions by tenths of the points. `review` says by student
    why there is no total until a person scores it, `noted` why a person should look at one that counts.
    """

    room: Classroom
    bins: tuple[int, ...]
    mean: float | None
    median: float | None
    exercises: tuple[ExerciseTally, ...]
    mistakes: tuple[MistakeTally, ...]
    undiagnosed: tuple[MistakeTally, ...]
    ended: tuple[Event, ...]
    slow: tuple[Event, ...]
    review: tuple[tuple[str, tuple[str, ...]], ...]
    noted: tuple[tuple[str, tuple[str, ...]], ...]
    late: tuple[GradedSubmission, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that any result is in."""
        return tuple(g for g in GROUPS if any(one.groups[g] for one in self.exercises))

    def to_data(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        data = asdict(self)
        data["room"]["max_points"] = self.room.max_points
        for shown, submission in zip(
            data["room"]["submissions"], self.room.submissions, strict=True
        ):
            shown["points"] = submission.points
        return data


def report_on(room: Classroom) -> ChapterReport:
    """Return the report on a class in a chapter."""
    points = [one.points for one in room.submissions if one.points is not None]
    return ChapterReport(
        room=room,
        bins=_bins(points, room.max_points),
        mean=mean(points) if points else None,
        median=median(points) if points else None,
        exercises=tuple(_tally(room, *exercise) for exercise in room.exercises),
        mistakes=_mistakes(room),
        undiagnosed=_undiagnosed(room),
        ended=tuple(
            Event(student, result.exercise, result.outcome)
            for student, result in _results(room)
            if result.outcome in ENDED
        ),
        slow=tuple(sorted(_slow(room), key=lambda event: -(event.seconds or 0.0))),
        review=_reasons(one for one in room.submissions if one.points is None),
        noted=_reasons(one for one in room.submissions if one.points is not None),
        late=tuple(one for one in room.submissions if one.late > 0),
    )


def group_of(result: Result) -> str:
    """Return which of `GROUPS` a result falls into."""
    if result.outcome in ENDED:
        return "ended early"
    if result.outcome in ("passed", "not attempted", "blocked"):
        return result.outcome
    if result.outcome == "failed":
        return "some points" if result.points else "no points"
    return "unknown"  # needs review, or the evidence is gone


def _reasons(
    submissions: Iterable[GradedSubmission],
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((one.person.id, one.reasons) for one in submissions if one.reasons)


def _results(room: Classroom) -> Iterator[tuple[str, Result]]:
    for submission in room.submissions:
        for result in submission.results:
            yield submission.person.id, result


def _bins(points: list[float], most: float) -> tuple[int, ...]:
    counts = Counter(min(int(BINS * p / most), BINS - 1) if most else 0 for p in points)
    return tuple(counts[index] for index in range(BINS))


def _tally(room: Classroom, exercise: str, title: str, most: float) -> ExerciseTally:
    results = [result for _, result in _results(room) if result.exercise == exercise]
    counts = Counter(map(group_of, results))
    known = [result.points for result in results if result.points is not None]
    share = mean(known) / most if known and most else None
    return ExerciseTally(exercise, title, most, {group: counts[group] for group in GROUPS}, share)


def _mistakes(room: Classroom) -> tuple[MistakeTally, ...]:
    """Return the known mistakes that were made, most frequent first."""
    made: dict[tuple[str, str], list[str]] = {}
    explained: dict[tuple[str, str], str] = {}
    for student, result in _results(room):
        if result.mistake:
            made.setdefault((result.exercise, result.mistake), []).append(student)
            explained[result.exercise, result.mistake] = result.explanation
    return _most_first(
        MistakeTally(*key, explained[key], tuple(students)) for key, students in made.items()
    )


def _undiagnosed(room: Classroom) -> tuple[MistakeTally, ...]:
    """Return where students failed and no known mistake explains it, by the check that failed first."""
    made: dict[tuple[str, str], list[str]] = {}
    for student, result in _results(room):
        if result.outcome == "failed" and not result.mistake:
            first = result.failed[0] if result.failed else ""
            made.setdefault((result.exercise, first), []).append(student)
    return _most_first(
        MistakeTally(exercise, "", first, tuple(students))
        for (exercise, first), students in made.items()
    )


def _most_first(tallies: Iterator[MistakeTally]) -> tuple[MistakeTally, ...]:
    return tuple(sorted(tallies, key=lambda tally: (-len(tally.students), tally.exercise)))


def _slow(room: Classroom) -> Iterator[Event]:
    """Yield answers that took long, by themselves and beside the class."""
    for exercise, _, _ in room.exercises:
        taken = [
            (student, result.seconds)
            for student, result in _results(room)
            if result.exercise == exercise and result.seconds is not None
        ]
        usual = median(seconds for _, seconds in taken) if taken else 0.0
        for student, seconds in taken:
            if seconds >= max(SLOW_SECONDS, SLOW_TIMES * usual):
                yield Event(student, exercise, f"the class's median is {usual:.2g} s", seconds)
