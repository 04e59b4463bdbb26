"""`progress("ch01_formats")` in a notebook: how far one is in its chapter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from grader.course.course import CourseError, find_course
from grader.feedback.style import style_of
from grader.student import journal
from grader.student.folder import Folder
from grader.student.naming import anchor_of
from grader.student.progress import (
    NOT_BEGUN,
    PASSED,
    TRIED,
    UNCHECKED,
    Part,
    Progress,
    Row,
    chapter_progress,
    extent,
    sums,
)
from grader.student.showing import someone_reads

_SIGNS = {PASSED: "✓", TRIED: "✗", UNCHECKED: "?", NOT_BEGUN: "·"}

_CLASSES = {PASSED: "ut-passed", TRIED: "ut-tried", UNCHECKED: "ut-tried", NOT_BEGUN: "ut-soft"}


@dataclass(frozen=True)
class ShownProgress:
    """A chapter's progress: a table where there is HTML, lines of text elsewhere."""

    progress: Progress

    def __repr__(self) -> str:
        return "\n".join(_lines(self.progress))

    def _repr_html_(self) -> str:
        rows = "".join(_html(self.progress))
        head = f"<p>{escape(_head(self.progress))}</p>"
        sheet = style_of("verdict.css", "progress.css")
        return f'{sheet}<div class="ut ut-progress">{head}<table>{rows}</table></div>'


def progress(chapter: str, *exercises: str) -> ShownProgress | None:
    """Show how far you are in a chapter: by what you saved, and what you graded since.

    `exercises` are those that your course has of it, if it has not all.

    Outside of a folder that `undertorch learn` made it knows what this kernel has graded. Where
    nobody reads along, as when a course is built or a submission is graded, it shows nothing.
    """
    try:
        found = find_course().chapter(chapter)
    except CourseError as error:
        print(error)
        return None
    if not someone_reads():
        return None
    root = journal.folder_around(Path.cwd())
    folder = None if root is None else Folder(root)
    return ShownProgress(chapter_progress(found, journal.recall(root), folder).of(exercises))


def _head(one: Progress) -> str:
    return f"{sums([one])}. {extent([one])}."


def _lines(one: Progress) -> Iterator[str]:
    """Yield the table as text, with one line for each exercise."""
    yield _head(one)
    width = max(len(row.exercise) for row in one.rows)
    for part, rows in one.parts():
        if part is not None:
            yield f"\n{_sitting(part, rows)}"
        for row in rows:
            yield (
                f"  {_SIGNS[row.state]} {row.exercise:{width}}  {row.minutes:3} min  "
                f"{row.level}  {_earned(row)}{_star(one, row)}"
            )


def _html(one: Progress) -> Iterator[str]:
    for part, rows in one.parts():
        if part is not None:
            yield f'<tr><th colspan="5">{escape(_sitting(part, rows))}</th></tr>'
        for row in rows:
            link = f'<a href="#{escape(anchor_of(row.title))}">{escape(row.title)}</a>'
            yield (
                f'<tr><td class="{_CLASSES[row.state]}">{_SIGNS[row.state]} {row.state}</td>'
                f'<td class="t">{link}{_star(one, row)}</td>'
                f'<td class="n">{row.minutes} min</td><td class="ut-soft">{row.level}</td>'
                f'<td class="n">{_earned(row)}</td></tr>'
            )


def _sitting(part: Part, rows: tuple[Row, ...]) -> str:
    passed = sum(row.state == PASSED for row in rows)
    minutes = sum(row.minutes for row in rows)
    return f"{part.number}. {part.question} ({minutes} minutes, {passed} of {len(rows)} passed)"


def _earned(row: Row) -> str:
    return f"{row.points:g} of {row.max_points:g}"


def _star(one: Progress, row: Row) -> str:
    return " ★" if row in one.short else ""
