"""`contents.md` in a student's folder: all chapters and exercises, and how far the student is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from grader.course.course import Course
from grader.files import write_atomically
from grader.student.folder import Folder
from grader.student.progress import NOT_BEGUN, PASSED, TRIED, UNCHECKED, Progress

NAME = "contents.md"

_MARK = "<!-- Written anew by `undertorch learn` and `undertorch progress`. -->"

_WORDS = {PASSED: "**passed**", TRIED: "tried", UNCHECKED: "tried, not checked", NOT_BEGUN: ""}


def write_contents(course: Course, folder: Folder, found: Sequence[Progress]) -> Path | None:
    """Write the page; None if a file of that name is there which is not ours."""
    path = folder.root / NAME
    text = "\n".join(_page(course, folder, found)) + "\n"
    if path.exists():
        before = path.read_text(encoding="utf-8", errors="replace")
        if not before.startswith(_MARK):
            return None
        if before == text:
            return path
    write_atomically(path, text)
    return path


def _page(course: Course, folder: Folder, found: Sequence[Progress]) -> Iterator[str]:
    yield f"{_MARK}\n# Contents\n"
    points, most = sum(one.points for one in found), sum(one.max_points for one in found)
    passed, total = sum(one.count(PASSED) for one in found), sum(len(one.rows) for one in found)
    yield f"{passed} of {total} exercises passed, {points:g} of {most:g} points.\n"
    yield "To bring this page up to date, save your notebooks and run `undertorch progress` in a"
    yield "terminal.\n"
    for one in found:
        path = folder.notebook(course.chapter(one.chapter)).relative_to(folder.root)
        number = one.chapter.partition("_")[0].removeprefix("ch").lstrip("0") or one.chapter
        yield f"## {number}. [{one.title}]({path.as_posix()})\n"
        yield f"{one.count(PASSED)} of {len(one.rows)} passed\n"
        if one.trouble:
            yield f"{one.trouble}\n"
        yield "| exercise | | | points |\n|---|---|---|--:|"
        for row in one.rows:
            earned = f"{row.points:g} of {row.max_points:g}"
            yield f"| {row.title} | `{row.exercise}` | {_WORDS[row.state]} | {earned} |"
        yield ""
