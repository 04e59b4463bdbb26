"""The lines between which a solution cell holds the answer: nbgrader's `### BEGIN SOLUTION` and END."""

from __future__ import annotations

import re

_LINE = re.compile(r"^[ \t]*###[ \t]*(BEGIN|END) SOLUTION\b.*\n?", re.MULTILINE)


def without_marks(source: str) -> str:
    """Return a solution cell's text without the marks: the answer as a person reads it."""
    return _LINE.sub("", source).rstrip("\n")
