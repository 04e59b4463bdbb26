"""Which released version a student's notebook was made from, so that what is the student's can be told.

A filled notebook is a plain copy of the released one, which lies beside the journal. An updated one
names its version in its metadata, and that version is kept, too. So a copy taken out of `kept/`, and
a notebook that Jupyter saved from its memory over the updated one, are still known for what they are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grader.course.course import Chapter
from grader.files import write_atomically
from grader.student.folder import Folder
from grader.student.notebooks import dump, load

_KEY = "undertorch"
_VERSION = re.compile(r"[0-9a-f]{16}")


def version_of(released: dict[str, Any]) -> str:
    """Return what tells a released notebook from its other versions."""
    return hashlib.sha256(dump(released)).hexdigest()[:16]


def base_of(
    folder: Folder, chapter: Chapter, mine: Mapping[str, Any], new: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the released notebook that the student's was made from; None if it is not at hand.

    `new` is the present one. Raises `CourseError` if the kept one cannot be read.
    """
    named = _named(mine)
    if named == version_of(new):
        return new
    kept = [_kept(folder, chapter, named)] if named else []
    for path in (*kept, folder.base(chapter)):
        if path.is_file():
            return load(path)
    return None


def name_version(notebook: dict[str, Any], new: dict[str, Any]) -> None:
    """Write into a merged notebook which version it has."""
    card = notebook["metadata"].get(_KEY)
    card = dict(card) if isinstance(card, Mapping) else {}
    notebook["metadata"][_KEY] = {**card, "version": version_of(new)}


def keep_version(folder: Folder, chapter: Chapter, new: dict[str, Any]) -> None:
    """Keep a released version for the next update."""
    write_atomically(_kept(folder, chapter, version_of(new)), dump(new))


def _named(mine: Mapping[str, Any]) -> str:
    card = mine["metadata"].get(_KEY)
    named = card.get("version") if isinstance(card, Mapping) else None
    return named if isinstance(named, str) and _VERSION.fullmatch(named) else ""


def _kept(folder: Folder, chapter: Chapter, version: str) -> Path:
    return folder.base(chapter).with_name(f"{version}.ipynb")
