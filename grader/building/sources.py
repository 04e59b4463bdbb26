"""The chapters' sources, `solutions/<chapter>/<name>.pct.py`: which there are, which holds what."""

from __future__ import annotations

import re
from pathlib import Path

from grader.course.course import Course

_CARD = re.compile(r'^# %%.*\bexercise="(\w+)"', re.MULTILINE)


def sources(course: Course) -> list[Path]:
    """Return every chapter's source, in order."""
    return sorted((course.root / "solutions").glob("*/*.pct.py"))


def source_of(course: Course, chapter: str) -> Path | None:
    """Return a chapter's source; None if it has none here, as in an instructor's folder."""
    return next((path for path in sources(course) if path.parent.name == chapter), None)


def source_with(course: Course, exercise: str) -> Path | None:
    """Return the source that holds the card of an exercise, built or not."""
    return next((path for path in sources(course) if exercise in cards_in(path)), None)


def cards_in(source: Path) -> list[str]:
    """Return the exercises whose cards a source holds, in order."""
    return _CARD.findall(source.read_text(encoding="utf-8"))
