"""`progress("ch01_formats")` in a notebook: how far one is in its chapter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from grader.course.course import Chapter, CourseError, find_course
from grader.feedback.style import CSS
from grader.student import journal
from grader.student.folder import Folder
from grader.student.progress import (
    NOT_BEGUN,
    PASSED,
    TRIED,
    UNCHECKED,
    Progress,
    Row,
    chapter_progress,
    extent,
    sums,
)

_SIGNS = {PASSED: "✓", TRIED: "✗", UNCHECKED: "?", NOT_BEGUN: "·"}


@dataclass(frozen=True)
class ShownProgress:
    """A chapter's progress, as a table for a notebook and as text for a terminal."""

    progress: Progress

    def __repr__(self) -> str:
        return "\n".join(_lines(self.progress))

    def _repr_html_(self) -> str:
        return f'<style>{CSS}</style><div class="ut-progress">{"".join(_html(self.progress))}</div>'


def progress(chapter: str) -> ShownProgress | None:
    """Show how far you are in a chapter: by what you saved, and what you graded since.

    Outside of a folder that `undertorch learn` made it knows what this kernel has graded. Where
    nobody reads along, as when a course is built or a submission is graded, it shows nothing.
    """
    try:
        found = find_course().chapter(chapter)
    except CourseError as error:
        print(error)
        return None
    root = journal.folder_around(Path.cwd())
    if root is not None:
        return ShownProgress(chapter_progress(found, journal.read(root), Folder(root)))
    if not _someone_reads():
        return None
    return ShownProgress(chapter_progress(found, journal.SESSION))
