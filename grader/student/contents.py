"""`contents.md` in a student's folder: all chapters, sittings and exercises, and how far one is.

It is written anew at every grade. Its links open a notebook at the exercise: JupyterLab finds a cell
by its id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from grader.course.course import Course
from grader.files import write_atomically
from grader.student.folder import Folder
from grader.student.progress import (
    NOT_BEGUN,
    PASSED,
    TRIED,
    UNCHECKED,
    Progress,
    Row,
    extent,
    progress,
    sums,
)

NAME = "contents.md"

_MARK = "<!-- Written anew by `grade`, `undertorch learn` and `undertorch progress`. -->"

_OURS = "<!-- Written anew by "
"""How the page begins, in all versions of the course."""

_WORDS = {PASSED: "**passed**", TRIED: "tried", UNCHECKED: "tried, not checked", NOT_BEGUN: ""}


def update_contents(course: Course, folder: Folder) -> None:
    """Write the page from what is saved and what the journal says now."""
    write_contents(course, folder, progress(course, folder))


def write_contents(course: Course, folder: Folder, found: Sequence[Progress]) -> Path | None:
    """Write the page; None if a file of that name is there which is not ours."""
    path = folder.root / NAME
    text = "\n".join(_page(course, folder, found)) + "\n"
    if path.exists():
        before = path.read_text(encoding="utf-8", errors="replace")
        if not before.startswith(_OURS):
            return None
        if before == text:
            return path
    write_atomically(path, text)
    return path


def _page(course: Course, folder: Folder, found: Sequence[Progress]) -> Iterator[str]:
    yield f"{_MARK}\n# Contents\n"
    yield f"{sums(found)}. {extent(found)}.\n"
    yield "This page is written anew whenever you grade. An open tab shows it as it was: close it and"
    yield "open it again.\n"
    for one in found:
        path = folder.notebook(course.chapter(one.chapter)).relative_to(folder.root).as_posix()
        number = one.chapter.partition("_")[0].removeprefix("ch").lstrip("0") or one.chapter
        yield f"## {number}. [{one.title}]({path})\n"
        yield f"{sums([one])}. {extent([one])}.\n"
        if one.trouble:
            yield f"{one.trouble}\n"
        yield "| exercise | minutes | difficulty | | points |\n|---|--:|---|---|--:|"
        for part, rows in one.parts():
            if part is not None:
                question = f"[{part.question}]({path}#cell-id=sitting-{part.id})"
                minutes = sum(row.minutes for row in rows)
                passed = sum(row.state == PASSED for row in rows)
                yield (
                    f"| **{part.number}. {question}** | **{minutes}** | | {passed} of {len(rows)} | |"
                )
            for row in rows:
                yield _line(row, path, bool(one.short))
        yield ""


def _line(row: Row, path: str, partly: bool) -> str:
    star = " ★" if partly and row.short else ""
    earned = f"{row.points:g} of {row.max_points:g}"
    link = f"[{row.title}]({path}#cell-id={row.exercise}-card)"
    return f"| {link}{star} | {row.minutes} | {row.level} | {_WORDS[row.state]} | {earned} |"
