"""A student's progress as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from grader.student.progress import NOT_BEGUN, PASSED, TRIED, UNCHECKED, Progress

_STYLES = {PASSED: "green", TRIED: "yellow", UNCHECKED: "yellow", NOT_BEGUN: "dim"}


def chapters_table(found: Sequence[Progress]) -> Table:
    """Return one line per chapter, and their sum."""
    table = Table(box=None, pad_edge=False)
    table.add_column("chapter", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name in ("passed", "tried", "not begun", "points"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in found:
        table.add_row(one.chapter, _bar(one), *_numbers([one]))
    table.add_row("in all", "", *_numbers(found))
    return table


def _numbers(found: Sequence[Progress]) -> list[str]:
    points, most = sum(one.points for one in found), sum(one.max_points for one in found)
    counts = [
        sum(one.count(*states) for one in found)
        for states in ((PASSED,), (TRIED, UNCHECKED), (NOT_BEGUN,))
    ]
    return [*map(str, counts), f"{points:g} of {most:g}"]


def _bar(one: Progress) -> Text:
    """Return one mark per exercise, in the chapter's order."""
    bar = Text()
    for row in one.rows:
        bar.append({PASSED: "■", NOT_BEGUN: "·"}.get(row.state, "□"), _STYLES[row.state])
    return bar


def chapter_table(one: Progress) -> Table:
    """Return one line per exercise of a chapter."""
    table = Table(box=None, pad_edge=False)
    for name in ("exercise", "", "points", "hints", ""):
        table.add_column(name, justify="right" if name in ("points", "hints") else "left")
    for row in one.rows:
        table.add_row(
            row.exercise,
            Text(row.state, _STYLES[row.state]),
            f"{row.points:g} of {row.max_points:g}",
            str(row.hints or ""),
            "solution seen" if row.solution else "",
        )
    return table
