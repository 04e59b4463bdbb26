"""What the tab key completes after `undertorch`: chapters, exercises, students, notebooks.

Each function takes the word as far as it is typed, as typer's `autocompletion` wants it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import typer

from grader.course.answers import read_answers
from grader.course.course import CourseError, find_course


def chapters(incomplete: str) -> list[str]:
    """Return the chapters' ids that begin so."""
    return _beginning(incomplete, lambda: (chapter.id for chapter in find_course().chapters()))


def exercises(incomplete: str) -> list[str]:
    """Return the exercises' ids that begin so."""
    return _beginning(
        incomplete,
        lambda: (
            exercise.id for chapter in find_course().chapters() for exercise in chapter.exercises
        ),
    )


def exercises_and_chapters(incomplete: str) -> list[str]:
    """Return the ids of both that begin so."""
    return [*chapters(incomplete), *exercises(incomplete)]


def students(incomplete: str) -> list[str]:
    """Return the students that begin so and have a folder in submitted/, where nbgrader puts them."""
    return _beginning(
        incomplete,
        lambda: (
            path.name
            for path in sorted((find_course().root / "submitted").iterdir())
            if path.is_dir() and not path.name.startswith(".")
        ),
    )


def anything(incomplete: str) -> list[str]:
    """Return what `check` takes: chapters, exercises, and notebooks of the working directory."""
    files = _beginning(incomplete, lambda: (str(path) for path in sorted(Path().glob("*.ipynb"))))
    return [*chapters(incomplete), *exercises(incomplete), *files]


def built(incomplete: str) -> list[str]:
    """Return what `build` takes: chapters, exercises, the myths and the questions."""
    pages = _beginning(incomplete, lambda: ("myths", "questions"))
    return [*exercises_and_chapters(incomplete), *pages]


def answers(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of the known answers to the exercise on the line that begin so."""

    def names() -> list[str]:
        chapter = find_course().chapter_of(context.params["exercise"])
        known = read_answers(chapter, chapter.exercise(context.params["exercise"]))
        return [answer.name for answer in known]

    return _beginning(incomplete, names)


def _beginning(incomplete: str, names: Callable[[], Iterable[str]]) -> list[str]:
    """Return the names that begin so; none where they cannot be read.

    A half-typed line is no place to complain.
    """
    try:
        return [name for name in names() if name.startswith(incomplete)]
    except (CourseError, OSError, ValueError, KeyError):
        return []
