"""Private variants of a chapter: which there are, what a secret draws, and a folder to prove one in."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

from grader.building.build import Built, build_variant, install
from grader.building.source import Variant
from grader.building.sources import source_of
from grader.course.course import Chapter, Course, CourseError
from grader.course.parameters import all_values, draw


def varied(chapter: Chapter) -> list[str]:
    """Return the exercises of a chapter that have parameters."""
    return [exercise.id for exercise in chapter.exercises if exercise.parameters]


def drawn(chapter: Chapter, secret: bytes) -> Variant:
    """Return the variant of a chapter that a secret stands for."""
    return {
        exercise.id: draw(secret, exercise.id, exercise.parameters)
        for exercise in chapter.exercises
        if exercise.parameters
    }


def every(chapter: Chapter, exercises: list[str]) -> list[Variant]:
    """Return as few variants as hold every private variant of each of these exercises."""
    columns = [
        [{name: values} for values in all_values(chapter.exercise(name).parameters)]
        for name in exercises
    ]
    return [
        {name: values for part in row if part for name, values in part.items()}
        for row in zip_longest(*columns)
    ]


def render_variant(chapter: Chapter, variant: Variant) -> list[Built]:
    """Return a chapter's notebooks for a private variant: reference and released.

    Paths are those of a course, `solutions/…` and `chapters/…`. Raises `AuthorError`, and
    `CourseError` if the chapter has no source.
    """
    source = source_of(Course(chapter.root), chapter.id)
    if source is None:
        raise CourseError(
            f"solutions/{chapter.id} in {chapter.root} has no source (*.pct.py): variants are "
            "rendered in a checkout of the course."
        )
    return build_variant(Course(chapter.root), source, variant)


def put(chapter: Chapter, variant: Variant, folder: Path) -> list[Path]:
    """Make `folder` a course with this variant of a chapter; return the notebooks that changed.

    It has the graders of the chapter's own course, and nbgrader's configuration.
    """
    built = render_variant(chapter, variant)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "grader").exists():
        (folder / "grader").symlink_to(chapter.root / "grader")
    if not (folder / "nbgrader_config.py").exists():
        shutil.copy(chapter.root / "nbgrader_config.py", folder)
    return install(Course(folder), built)


@contextmanager
def temporary_variant(chapter: Chapter, variant: Variant) -> Iterator[Chapter]:
    """Return the variant of a chapter in a temporary course, as long as this lasts."""
    with tempfile.TemporaryDirectory(prefix="undertorch-variant-") as name:
        put(chapter, variant, Path(name))
        yield Chapter(Path(name), chapter.id)
