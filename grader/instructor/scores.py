"""The scores of a class as a table: points per exercise, states, what needs review, feedback."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from grader.course.course import Chapter
from grader.evidence.outcome import Outcome
from grader.evidence.store import Store
from grader.nbgrader.gradebook import total

_STYLES = {
    "passed": "green",
    "failed": "red",
    "not attempted": "dim",
    "needs review": "yellow",
}


@dataclass(frozen=True)
class Row:
    """One student's record: points, most points, outcome and mistake by exercise, and why it needs
    review. Points are None while nobody knows them.
    """

    student: str
    results: dict[str, tuple[float | None, float, str, str]]
    review: str

    @property
    def total(self) -> float | None:
        """All points; None while an exercise has none."""
        return total((points for points, _, _, _ in self.results.values()), 0.0)


def read_scores(chapter: Chapter) -> list[Row]:
    """Return a row for each student whose evidence is kept, by name."""
    rows = []
    for folder in sorted((chapter.root / "evidence").glob(f"*/{chapter.id}")):
        record = Store(chapter.root, folder.parent.name, chapter.id).read()
        if record is None:
            continue
        verdicts = record["verdicts"]
        results = {
            v["exercise"]: (
                None if v["outcome"] == Outcome.NEEDS_REVIEW else v["points"],
                v["max_points"],
                v["outcome"],
                v["mistake"],
            )
            for v in verdicts
        }
        reviews = dict.fromkeys(v["review"] for v in verdicts if v["review"])
        rows.append(Row(folder.parent.name, results, " ".join(reviews)))
    return rows


def table(chapter: Chapter, rows: list[Row]) -> Table:
    """Return the rows as a table for a terminal. What passed is counted; the rest has a line each,
    below the student: with a column of their own, 80 columns would leave the diagnosis none.
    """
    shown = Table(title=chapter.card["title"], title_justify="left", pad_edge=False)
    shown.add_column("student", no_wrap=True)
    shown.add_column("points", justify="right", no_wrap=True)
    shown.add_column("outcome", no_wrap=True)
    shown.add_column("diagnosis")
    for row in rows:
        most = sum(most for _, most, _, _ in row.results.values())
        shown.add_section()
        name, points = Text(row.student, "bold"), Text(_of(row.total, most), "bold")
        shown.add_row(name, points, "", "")
        for earned, exercise, outcome, mistake in _lines(row):
            style = _STYLES.get(outcome, "magenta")
            shown.add_row(f"  {exercise}", earned, Text(outcome, style), mistake)
        if row.review:
            shown.add_row(Text("  review", "yellow"), "", "", Text(row.review, "yellow"))
    return shown


def _lines(row: Row) -> Iterator[tuple[str, str, str, str]]:
    """Yield points, exercise, outcome, diagnosis; exercises that came to the same share a line."""
    counts = Counter(outcome for _, _, outcome, _ in row.results.values())
    shared = [outcome for outcome in counts if outcome == "passed" or counts[outcome] > 2]
    said = [o for o in shared if not any(m for _, _, x, m in row.results.values() if x == o)]
    for outcome in said:
        number = counts[outcome]
        yield "", f"{number} exercise{'s' * (number != 1)}", outcome, ""
    for exercise, (points, most, outcome, mistake) in row.results.items():
        if outcome not in said:
            yield _of(points, most), exercise, outcome, mistake


def _of(points: float | None, most: float) -> str:
    return f"{'–' if points is None else f'{points:g}'} / {most:g}"
