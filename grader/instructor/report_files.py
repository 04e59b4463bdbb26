"""A class report as a page, as rows for a spreadsheet, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from grader.instructor.pages import render_page
from grader.instructor.report import GROUPS, ChapterReport, group_of
from grader.nbgrader.spreadsheet import Value

SIGNS = dict(zip(GROUPS, "✓◐✗·!■?", strict=True))
"""One sign for each group of results, for a row of them."""

COLUMNS = (
    "chapter", "student", "name", "exercise", "points", "max_points", "outcome", "mistake",
    "seconds", "late_seconds", "penalty", "by_hand", "review",
)  # fmt: skip


def report_page(reports: Sequence[ChapterReport], *, day: str, anonymous: bool) -> str:
    """Return the page. `day` is when the class was looked at."""
    named = any(one.person.name for report in reports for one in report.room.submissions)
    return render_page(
        "report.html.j2",
        reports=reports,
        day=day,
        anonymous=anonymous,
        named=named,
        groups=GROUPS,
        signs=SIGNS,
        group_of=group_of,
    )


def report_rows(reports: Sequence[ChapterReport]) -> Iterator[tuple[Value, ...]]:
    """Yield a header, then one row for each exercise of each submission.

    `late_seconds` and `penalty`, in points, are those of the whole submission.
    """
    yield COLUMNS
    for report in reports:
        for one in report.room.submissions:
            for result in one.results:
                yield (
                    report.room.chapter, one.person.id, one.person.name, result.exercise,
                    result.points, result.max_points, result.outcome, result.mistake,
                    result.seconds, one.late, one.penalty, "yes" if result.by_hand else "no",
                    result.review or one.trouble,
                )  # fmt: skip


def report_json(reports: Sequence[ChapterReport]) -> str:
    """Return the reports as JSON."""
    return json.dumps([report.to_data() for report in reports], indent=1)
