"""CSV files that a spreadsheet may open: text of students cannot become a formula there."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from grader.files import as_utf8

_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What makes a spreadsheet compute a cell, full-width forms too (OWASP, "CSV Injection")."""

Value = str | float | None


def defused(value: Value) -> str:
    """Return a cell's text. Text that would be a formula gets an apostrophe in front; numbers do not.

    Halves of surrogate pairs, which no file can hold, become question marks.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return f"{value:.10g}"
    text = as_utf8(value).replace("\0", "")
    return f"'{text}" if text.lstrip(" ").startswith(_STARTS) else text


def csv_text(rows: Iterable[Sequence[Value]]) -> str:
    """Return rows as RFC 4180 has them, each cell defused."""
    text = io.StringIO()
    csv.writer(text).writerows([defused(value) for value in row] for row in rows)
    return text.getvalue()
