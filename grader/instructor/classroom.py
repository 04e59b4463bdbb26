"""A class in one chapter: each submission's exercises, from kept evidence and the gradebook together.

The gradebook has the last word on points, for a person may have changed them; the evidence says how
they came about. Where one of them is missing, the other is shown.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from grader.course.course import Chapter, Course, CourseError
from grader.evidence.outcome import Outcome
from grader.evidence.store import OtherSchema, Store
from grader.nbgrader.gradebook import total
from grader.nbgrader.results import (
    ChapterResults,
    HandedIn,
    Person,
    open_gradebook,
    read_results,
)

_T = TypeVar("_T")

Track = Callable[[Sequence[_T], str], Iterable[_T]]
"""Passes things on one by one, and shows a person how far it is."""

UNKNOWN = "unknown"
"""The outcome of an exercise that has points and no evidence any more."""

LOOK = "A person should look at it."
"""All that a page without names says of why."""


@dataclass(frozen=True)
class Result:
    """One exercise of one submission. `points` is None while nobody knows them; `seconds` is how long
    the code was waited for, None if that was not kept.
    """

    exercise: str
    points: float | None
    max_points: float
    outcome: str
    mistake: str = ""
    explanation: str = ""
    failed: tuple[str, ...] = ()
    review: str = ""
    seconds: float | None = None
    by_hand: bool = False


@dataclass(frozen=True)
class GradedSubmission:
    """What one student handed in for a chapter; `late` in seconds, `penalty` in points."""

    person: Person
    results: tuple[Result, ...]
    late: float = 0.0
    penalty: float = 0.0
    trouble: str = ""

    @property
    def points(self) -> float | None:
        """All points, lateness counted; None while an exercise has none."""
        return total((result.points for result in self.results), self.penalty)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why a person should look at it, each reason once."""
        said = [result.review for result in self.results if result.review]
        return tuple(dict.fromkeys([self.trouble, *said] if self.trouble else said))


@dataclass(frozen=True)
class Classroom:
    """A class in one chapter. `absent` handed in nothing."""

    chapter: str
    title: str
    exercises: tuple[tuple[str, str, float], ...]
    """Id, title and most points of each, in the chapter's order."""
    submissions: tuple[GradedSubmission, ...]
    absent: tuple[Person, ...]

    @property
    def max_points(self) -> float:
        """The most points there are."""
        return sum(points for _, _, points in self.exercises)


def chapters_to_show(course: Course, names: Iterable[str]) -> list[Chapter]:
    """Return the chapters of those names; without any, those that were graded."""
    chosen = [course.chapter(name) for name in names]
    if not chosen:
        chosen = [c for c in course.chapters() if any((course.root / "evidence").glob(f"*/{c.id}"))]
    if not chosen:
        raise CourseError("Nothing is graded yet. Run: undertorch grade CHAPTER")
    return chosen


def read_classrooms(chapters: Iterable[Chapter], track: Track[str]) -> list[Classroom]:
    """Return the class in each chapter. Raises `CourseError` where nothing is graded."""
    chapters = list(chapters)
    with open_gradebook(chapters[0].root) as gradebook:
        results = [read_results(gradebook, chapter.id) for chapter in chapters]
    return [_read(chapter, s, track) for chapter, s in zip(chapters, results, strict=True)]


def anonymous(classrooms: Iterable[Classroom]) -> list[Classroom]:
    """Return the classes without names: `student 1` is the same person in all of them.

    Numbers are drawn anew each time. What a student can have written, the reasons for a review, is
    left out.
    """
    classrooms = list(classrooms)
    people = {
        p.id for room in classrooms for p in [*room.absent, *(s.person for s in room.submissions)]
    }
    names = sorted(people)
    random.SystemRandom().shuffle(names)
    width = len(str(len(names)))
    aliases = {name: Person(f"student {n:0{width}}") for n, name in enumerate(names, 1)}
    return [_renamed(room, aliases) for room in classrooms]


def _renamed(room: Classroom, aliases: Mapping[str, Person]) -> Classroom:
    submissions = [
        replace(
            submission,
            person=aliases[submission.person.id],
            trouble=LOOK if submission.trouble else "",
            results=tuple(
                replace(result, review=LOOK if result.review else "")
                for result in submission.results
            ),
        )
        for submission in room.submissions
    ]
    absent = sorted((aliases[person.id] for person in room.absent), key=lambda person: person.id)
    return replace(
        room,
        submissions=tuple(sorted(submissions, key=lambda one: one.person.id)),
        absent=tuple(absent),
    )


def _read(chapter: Chapter, results: ChapterResults, track: Track[str]) -> Classroom:
    people = {person.id: person for person in results.people}
    kept = {path.parent.name for path in (chapter.root / "evidence").glob(f"*/{chapter.id}")}
    students = sorted(kept | set(results.handed_in))
    if not students:
        raise CourseError(f"Nothing is graded yet. Run: undertorch grade {chapter.id}")
    submissions = [
        _submission(
            chapter, people.get(name, Person(name)), results.handed_in.get(name, HandedIn(0.0))
        )
        for name in track(students, f"reading {chapter.id}")
    ]
    return Classroom(
        chapter.id,
        str(chapter.card.get("title", chapter.id)),
        tuple((exercise.id, exercise.title, exercise.points) for exercise in chapter.exercises),
        tuple(submissions),
        tuple(person for name, person in people.items() if name not in students),
    )


def _submission(chapter: Chapter, person: Person, handed_in: HandedIn) -> GradedSubmission:
    """Return one submission; evidence that cannot be read is a reason to look, not to stop."""
    store = Store(chapter.root, person.id, chapter.id)
    try:
        record, trouble = store.read(), ""
    except OtherSchema:
        record, trouble = None, "Its evidence was kept by another version: grade it again."
    except (ValueError, KeyError, OSError):
        record, trouble = None, "Its evidence cannot be read: grade it again."
    verdicts = {verdict["exercise"]: verdict for verdict in record["verdicts"]} if record else {}
    seconds = store.seconds() if record else {}
    results = []
    for exercise in chapter.exercises:
        verdict, cell = verdicts.get(exercise.id), handed_in.cells.get(exercise.grade_id)
        points = cell.points if cell else _points_in(verdict)
        result = Result(
            exercise.id, points, exercise.points, UNKNOWN, by_hand=bool(cell and cell.by_hand)
        )
        if verdict is not None:
            result = _with_verdict(result, verdict, seconds.get(exercise.grade_id))
        if cell and cell.needs_review and not result.review:
            result = replace(result, review="Marked in the gradebook for a person to grade.")
        results.append(result)
    if not record and not trouble and not handed_in.cells:
        trouble = "It has neither points nor evidence: it was never graded to the end."
    return GradedSubmission(
        person, tuple(results), handed_in.late_seconds, handed_in.penalty, trouble
    )


def _points_in(verdict: Mapping[str, Any] | None) -> float | None:
    if verdict is None or verdict["outcome"] == Outcome.NEEDS_REVIEW:
        return None
    return float(verdict["points"])


def _with_verdict(result: Result, verdict: Mapping[str, Any], seconds: float | None) -> Result:
    failed = [check["name"] for check in verdict["checks"] if check["state"] == "failed"]
    return replace(
        result,
        outcome=verdict["outcome"],
        mistake=verdict["mistake"],
        explanation=verdict["diagnosis"],
        failed=tuple(failed),
        review=verdict["review"],
        seconds=seconds,
    )
