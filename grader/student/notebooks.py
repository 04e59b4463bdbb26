"""A student's notebook as JSON: read whole, changed in one place, written as Jupyter writes it.

Unlike `grader.submission.rebuild`, which takes from a notebook what may be graded, this keeps
everything: outputs, attachments, metadata that nobody here knows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from grader.course.cells import source_of
from grader.course.course import Chapter, CourseError
from grader.submission.grade_call import other_variants


def load(path: Path) -> dict[str, Any]:
    """Return a notebook of format 4. Raises `CourseError` for anything else."""
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise CourseError(f"There is no {path}.") from None
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or "it is not JSON"
        raise CourseError(f"{path} cannot be read: {why}. Nothing was changed.") from None
    if not isinstance(data, dict) or data.get("nbformat") != 4 or not _cells_are_good(data):
        raise CourseError(
            f"{path} is no notebook of format 4. Nothing was changed. If Jupyter opens it, save it "
            "there once; that brings it to today's format."
        )
    data.setdefault("metadata", {})
    for cell in data["cells"]:
        cell["source"] = source_of(cell)
        cell.setdefault("metadata", {})
    return data


def refuse_other_variant(
    chapter: Chapter, path: Path, notebook: dict[str, Any], exercise: str = ""
) -> None:
    """Raise `CourseError` if a notebook holds another variant than the course, whose text is not its.

    `exercise` says which one matters; without it, all do.
    """
    others = other_variants(chapter, notebook["cells"])
    found = [name for name in others if exercise in ("", name)]
    if found:
        raise CourseError(
            f"{path} is of another variant of the course than the one installed here "
            f"({', '.join(found)}). It was left as it is: ask your instructor for a new one."
        )


def _cells_are_good(data: dict[str, Any]) -> bool:
    cells = data.get("cells")
    return isinstance(cells, list) and all(
        isinstance(cell, dict)
        and isinstance(cell.get("cell_type"), str)
        and isinstance(cell.get("metadata", {}), dict)
        and isinstance(source_of(cell), str)
        for cell in cells
    )


def dump(notebook: dict[str, Any]) -> bytes:
    """Return the bytes of a notebook as nbformat writes them: keys sorted, a line per line."""
    written = {**notebook, "cells": [_split(cell) for cell in notebook["cells"]]}
    text = json.dumps(written, ensure_ascii=False, indent=1, sort_keys=True)
    return (text + "\n").encode("utf-8", "replace")


def _split(cell: dict[str, Any]) -> dict[str, Any]:
    return {**cell, "source": cell["source"].splitlines(keepends=True)}
