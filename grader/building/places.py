"""Where on the site something stands: the one place that knows how chapters are cut into pages.

A source names a place and no file: `ch02_strides#view_stride` is a section of a chapter,
`myths#contiguous-copies` a myth, `questions/view-or-reshape` a question, `explorers/strides` a page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from markdown.extensions.toc import slugify

from grader.course.course import AuthorError, Course


@dataclass(frozen=True)
class Place:
    """A place on the site: its page below `site/`, its anchor there or "", and what it is called."""

    page: str
    anchor: str
    title: str

    def link(self, folder: str = "") -> str:
        """Return a Markdown link to it, from a page in `folder` below `site/`."""
        up = "../" * len(Path(folder).parts)
        return f"[{self.title}]({up}{self.page}{'#' + self.anchor if self.anchor else ''})"


def place(course: Course, named: str) -> Place:
    """Return the place that a source names. Raises `AuthorError` where there is none."""
    page, _, anchor = named.partition("#")
    if page in {chapter.id for chapter in course.chapters()}:
        title = sections_of(course, page).get(anchor)
        found = title and Place(f"chapters/{page}.md", anchor, title)
    elif anchor:
        text = _text(course, page)
        marked = re.search(
            rf"^(?:#+ )?(?:- \[)?\**[“\"]?(.+?)[”\"]?\**(?:\]\(\S+\))? *\{{ #{re.escape(anchor)}\b",
            text,
            re.M,
        )
        found = marked and Place(f"{page}.md", anchor, marked[1].strip())
    else:
        heading = re.search(r"^# (.+)$", _text(course, page), re.M)
        found = heading and Place(f"{page}.md", "", heading[1])
    if not found:
        raise AuthorError(f"There is no {named!r} on the site.")
    return found


def sections_of(course: Course, chapter: str) -> dict[str, str]:
    """Return the headings of a chapter, by anchor; {} where it has no page yet.

    Its overview lists what its other pages hold. Links to a section name the overview:
    `site/book.py` leads them to the page that has it.
    """
    text = _text(course, f"chapters/{chapter}")
    listed = re.findall(r"\[(.+?)\]\(\S+\)\{ #([\w-]+) \.ut-moved \}", text)
    headings = re.findall(r"^##{1,3} (.+?)(?: \{ #([\w-]+) \})?$", text, flags=re.MULTILINE)
    return {anchor or slugify(title, "-"): title for title, anchor in [*headings, *listed]}


def _text(course: Course, page: str) -> str:
    path = course.root / "site" / f"{page}.md"
    return path.read_text(encoding="utf-8") if path.is_file() else ""
