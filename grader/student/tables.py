"""A student's progress as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from grader.course.exercise import in_hours
from grader.student.progress import NOT_BEGUN, PASSED, TRIED, UNCHECKED, Progress, Row

_STYLES = {PASSED: "green", TRIED: "yellow", UNCHECKED: "yellow", NOT_BEGUN: "dim"}


def chapters_table(found: Sequence[Progress]) -> Table:
    """Return one line per chapter. It fits into 80 columns, with all points too."""
    table = Table(box=None, pad_edge=False)
    table.add_column("chapter", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name in ("passed", "tried", "★", "points", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in found:
        short = [row.state == PASSED for row in one.short]
        table.add_row(
            one.chapter,
            _bar(one),
            f"{one.count(PASSED)}",
            f"{one.count(TRIED, UNCHECKED)}",
            f"{sum(short)} of {len(short)}" if short else "",
            f"{one.points:g} of {one.max_points:g}",
            in_hours(one.minutes).replace("hours", "h").replace("hour", "h"),
        )
    return table


def _bar(one: Progress) -> Text:
    """Return one mark per exercise, in the chapter's order."""
    bar = Text()
    for row in one.rows:
        bar.append({PASSED: "■", NOT_BEGUN: "·"}.get(row.state, "□"), _STYLES[row.state])
    return bar


def chapter_table(one: Progress) -> Group:
    """Return one line per exercise of a chapter, under the questions of its sittings."""
    width = max(len(row.exercise) for row in one.rows) + 2
    shown: list[RenderableType] = []
    for part, rows in one.parts():
        if part is not None:
            minutes = sum(row.minutes for row in rows)
            space = "\n" if shown else ""
            shown.append(
                Text(f"{space}{part.number}. {part.question}", "bold").append(
                    f"  {minutes} minutes", "dim"
                )
            )
        shown.append(_rows(one, rows, width))
    return Group(*shown)


def _rows(one: Progress, rows: Sequence[Row], width: int) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(min_width=width, no_wrap=True)
    for least in (6, 5, len(UNCHECKED), 7):
        table.add_column(min_width=least, justify="right" if least > 5 else "left", no_wrap=True)
    table.add_column()
    for row in rows:
        hints = f"{row.hints} hint{'s' * (row.hints != 1)}" if row.hints else ""
        solution = "solution seen" if row.solution else ""
        table.add_row(
            row.exercise + (" ★" if row in one.short else ""),
            f"{row.minutes} min",
            row.level,
            Text(row.state, _STYLES[row.state]),
            f"{row.points:g} of {row.max_points:g}",
            ", ".join(filter(None, (hints, solution))),
        )
    return table
