"""An exercise, and the sittings that a chapter's exercises are done in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from grader.course.parameters import Parameter, Values, public_values
from grader.course.rules import Rule


@dataclass(frozen=True)
class Exercise:
    """One function or class that the student writes, and what its card declares."""

    id: str
    title: str
    points: float
    minutes: int
    difficulty: int
    prerequisites: tuple[str, ...]
    teaches: str
    off_limits: tuple[Rule, ...]
    stub: str
    budget: Mapping[str, float] = field(default_factory=dict)
    """What differs from the course's limits, by the names of `grader.inside.process.budget.Budget`."""
    chapter: str = ""
    parameters: tuple[Parameter, ...] = ()
    values: Values = field(default_factory=dict)
    """The values that its parameters have here."""
    sitting: str = ""
    """The id of the sitting that it is in; "" in a chapter without sittings."""
    forbids: str = ""
    """What is off limits, in a phrase; "" where the rules say it themselves."""
    short: bool = False
    """Is it on the short path: what everyone should have built?"""

    @property
    def variant(self) -> Values:
        """The values, if they are those of a private variant; else nothing."""
        return {} if self.values == public_values(self.parameters) else self.values

    @property
    def grade_id(self) -> str:
        """The id of the exercise's grade cell."""
        return f"{self.id}-grade"


@dataclass(frozen=True)
class Sitting:
    """A part of a chapter, an hour or so, with one question and a natural end. `number` counts the sittings that the course has.

    `id` names it within its chapter, in cell ids and addresses. `question` is what it answers,
    `reached` what a student has at its end; both are Markdown.
    """

    id: str
    number: int
    question: str
    reached: str
    exercises: tuple[Exercise, ...]

    @property
    def minutes(self) -> int:
        """How long its exercises take, by their own minutes."""
        return minutes_of(self.exercises)

    @property
    def short(self) -> tuple[Exercise, ...]:
        """Its exercises that are on the short path."""
        return short_path(self.exercises)


def short_path(exercises: Iterable[Exercise]) -> tuple[Exercise, ...]:
    """Return what everyone should have built, of these exercises."""
    return tuple(exercise for exercise in exercises if exercise.short)


def minutes_of(exercises: Iterable[Exercise]) -> int:
    """Return how long exercises take together."""
    return sum(exercise.minutes for exercise in exercises)


def in_hours(minutes: int) -> str:
    """Return a time in words: "45 minutes", "2½ hours"."""
    if minutes < 60:
        return f"{minutes} minutes"
    hours, quarters = divmod(round(minutes / 15), 4)
    count = f"{hours}{('', '¼', '½', '¾')[quarters]}"
    return f"{count} hour" if count == "1" else f"{count} hours"
