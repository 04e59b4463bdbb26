"""What goes into every packed grader: Undertorch's code, one chapter's files, how to grade it."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import grader
from grader.course.course import Chapter, CourseError
from grader.course.course_file import read_course_file
from grader.inside.process.budget import Budget
from grader.instructor.bundles.requirements import requirements_text
from grader.nbgrader.chapter_files import chapter_files
from grader.nbgrader.commands import autograde_app
from grader.nbgrader.grade import GradeInBox
from grader.nbgrader.register import as_registered, register

HOUSE = "undertorch"
"""The folder in a bundle that holds what this module gathers."""

TERMS = "bundle.json"
"""The file in it that says what is graded, and how."""

_OURS = (".py", ".css", ".j2", ".json")


@dataclass(frozen=True)
class Packed:
    """A bundle that was written: where, for which notebook, what it is worth."""

    path: Path
    notebook: str
    exercises: int
    points: float


def gather(chapter: Chapter) -> dict[str, bytes]:
    """Return the files of a bundle's house, by path.

    Solutions are among them: known mistakes are edits of these.
    """
    files = {f"grader/{path}": content for path, content in _code()}
    files |= {place.as_posix(): path.read_bytes() for path, place in chapter_files(chapter)}
    files[TERMS] = json.dumps(_terms(chapter)).encode()
    files["requirements.txt"] = requirements_text().encode()
    return {f"{HOUSE}/{path}": content for path, content in files.items()}


def packed(chapter: Chapter, path: Path) -> Packed:
    """Return what to say of a bundle of this chapter."""
    points = sum(exercise.points for exercise in chapter.exercises)
    number = len(chapter.exercises)
    return Packed(path, chapter.released.name, number, points)


def is_private(chapter: Chapter) -> bool:
    """Does an exercise of the chapter have values that a secret drew?"""
    return any(exercise.variant for exercise in chapter.exercises)


def _code() -> Iterator[tuple[str, bytes]]:
    """Yield our own code and what belongs to it; chapters apart."""
    package = Path(grader.__file__).parent
    for path in sorted(package.rglob("*")):
        inner = path.relative_to(package)
        if path.suffix in _OURS and not re.match(r"ch\d", inner.parts[0]):
            yield inner.as_posix(), path.read_bytes()


def _terms(chapter: Chapter) -> dict[str, Any]:
    if chapter.origin and chapter.id not in read_course_file(chapter.root).chapters:
        raise CourseError(f"undertorch.toml does not name {chapter.id}.")
    app = autograde_app(chapter.root, chapter.id)
    budget: Budget = GradeInBox(parent=app).budget
    with tempfile.TemporaryDirectory() as scratch:
        url = app.coursedir.db_url if chapter.origin else f"sqlite:///{scratch}/gradebook.db"
        if not chapter.origin:
            register(chapter, url, app.coursedir.course_id)
        released = as_registered(chapter, url)
    return {
        "chapter": chapter.id,
        "chosen": chapter.origin is not None,
        "budget": asdict(budget),
        "released": released,
    }
