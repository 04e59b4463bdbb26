"""Sittings: a chapter in parts of an hour or so, each with one question that it answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.course.course import Exercise


@dataclass(frozen=True)
class Sitting:
    """A part of a chapter with a natural end. `number` counts the sittings that the course has.

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
