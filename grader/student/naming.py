"""Which exercise a student means, by whatever stands between the brackets; and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from grader.course.course import Chapter, Course, CourseError


def named(course: Course, given: object, call: str) -> tuple[Chapter, str]:
    """Return an exercise by its name, and its chapter. Raises `CourseError` with what to write.

    `call` is the function that was called in the notebook: `grade`, `hint`, `solution`.
    """
    chapters = {
        exercise.id: chapter for chapter in course.chapters() for exercise in chapter.exercises
    }
    if isinstance(given, str) and given in chapters:
        return chapters[given], given
    example = next(iter(chapters), "decode")
    if isinstance(given, str):
        close = did_you_mean(given, chapters)
        other = f' An exercise\'s name stands in its grade cell, as in `grade("{example}")`.'
        raise CourseError(f"No exercise is called {given!r}.{close or other}")
    name = getattr(given, "__name__", "")
    if name not in chapters:
        name = example
    if given is None:
        raise CourseError(f'Say which exercise, by its name in quotes: `{call}("{name}")`.')
    raise CourseError(f'Write the exercise\'s name in quotes: `{call}("{name}")`.')


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question after the names most like a word; nothing if none is like it."""
    close = get_close_matches(word, known, n=2, cutoff=0.6)
    return f" Did you mean {' or '.join(close)}?" if close else ""


def anchor_of(title: str) -> str:
    """Return what Jupyter makes of the heading of an exercise's card, for links in its notebook."""
    return title.replace("`", "").replace(" ", "-")
