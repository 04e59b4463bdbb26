"""Draws a chapter's private variant from a course's secret and writes its notebooks."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from grader.building.source import Variant
from grader.building.variants import drawn, put, varied
from grader.course.course import Chapter, CourseError

SECRET_BYTES = 16
"""Fewest bytes of a secret: nobody tries 2**128 of them to find the drawn values' secret."""


@dataclass(frozen=True)
class Written:
    """A variant that was written: its values by exercise id, and the files that changed."""

    variant: Variant
    changed: tuple[Path, ...]


def read_secret(path: Path) -> bytes:
    """Return a course's secret. Raises `CourseError` with how to make one."""
    make = f"Make one, and keep it out of what students see: openssl rand -hex 32 > {path}"
    if not path.is_file():
        raise CourseError(f"There is no secret in {path}. {make}")
    secret = path.read_bytes().strip()
    if len(secret) < SECRET_BYTES:
        raise CourseError(f"The secret in {path} has under {SECRET_BYTES} bytes. {make}")
    return secret


def write_secret(path: Path) -> None:
    """Make a secret that only its owner may read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_hex(32) + "\n")


def write_variant(chapter: Chapter, secret: bytes, folder: Path) -> Written:
    """Write the released notebook and the reference of the chapter's private variant.

    Raises `CourseError` if the chapter has no parameters, or `folder` holds another variant of it,
    the public one or one that students may have by now.
    """
    if not varied(chapter):
        raise CourseError(f"No exercise of {chapter.id} has parameters: there is one variant.")
    if folder.resolve() == chapter.root.resolve() or any(folder.glob("solutions/*/*.pct.py")):
        raise CourseError(f"{folder} holds the public course. Name a folder of its own: --out DIR")
    variant = drawn(chapter, secret)
    if any((folder / "chapters" / chapter.id).glob("*.ipynb")):
        refuse_another(Chapter(folder, chapter.id), variant)
    return Written(variant, tuple(put(chapter, variant, folder)))


def refuse_another(there: Chapter, variant: Variant) -> None:
    """Raise `CourseError` if a folder's chapter has an exercise of another variant."""
    found = {exercise.id: exercise.variant for exercise in there.exercises if exercise.parameters}
    if any(variant.get(exercise, {}) != values for exercise, values in found.items()):
        raise CourseError(
            f"{there.root} holds another variant of {there.id}, which students may have by now. "
            "Name another folder; or move the chapter's notebooks away, if nobody has them."
        )
