"""The scores of a class as a table: points per exercise, states, what needs review, feedback."""

from __future__ import annotations

from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from grader.core.course import Chapter
from grader.core.store import Store

_STYLES = {
    "passed": "green",
    "failed": "red",
    "not attempted": "dim",
    "needs review": "yellow",
}


@dataclass(frozen=True)
class Row:
    """One student's record: points and outcome by grade cell, and why it needs review."""

    student: str
    results: dict[str, tuple[float, float, str, str]]
    review: str

    @property
    def total(self) -> float:
        """All points."""
        return sum(points for points, _, _, _ in self.results.values())


def read_scores(chapter: Chapter) -> list[Row]:
    """Return a row for each student whose evidence is kept, by name."""
    rows = []
    for folder in sorted((chapter.root / "evidence").glob(f"*/{chapter.id}")):
        record = Store(chapter.root, folder.parent.name, chapter.id).read()
        if record is None:
            continue
        verdicts = record["verdicts"]
        results = {
            v["exercise"]: (v["points"], v["max_points"], v["outcome"], v["mistake"])
            for v in verdicts
        }
        reviews = dict.fromkeys(v["review"] for v in verdicts if v["review"])
        rows.append(Row(folder.parent.name, results, " ".join(reviews)))
    return rows


def table(chapter: Chapter, rows: list[Row]) -> Table:
    """Return the rows as a table for a terminal, one line per exercise."""
    shown = Table(title=chapter.card["title"], title_justify="left", pad_edge=False)
    shown.add_column("student", no_wrap=True)
    shown.add_column("points", justify="right")
    shown.add_column("exercise", no_wrap=True)
    shown.add_column("outcome", no_wrap=True)
    shown.add_column("diagnosis")
    for row in rows:
        most = sum(most for _, most, _, _ in row.results.values())
        shown.add_section()
        shown.add_row(
            Text(row.student, "bold"), Text(f"{row.total:g} / {most:g}", "bold"), "", "", ""
        )
        for exercise, (points, maximum, outcome, mistake) in row.results.items():
            style = _STYLES.get(outcome, "magenta")
            shown.add_row("", f"{points:g} / {maximum:g}", exercise, Text(outcome, style), mistake)
        if row.review:
            shown.add_row("", "", Text("review", "yellow"), "", Text(row.review, "yellow"))
    return shown
