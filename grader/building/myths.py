"""The pages of myths: what is often said of PyTorch, and short programs that show otherwise.

One file and one page per chapter in `site/myths/`, in Jupytext's percent format. A cell is a myth:

    # %% an-anchor exercise_or_section
    # The claim, as people say it.
    #
    # What is true, in a sentence or two.
    print("a program that shows it")

The programs run when the pages are built, each in names of its own, and what they print stands below
them. An overview lists the claims. It has the address and the anchors that all myths once had on one
page, and leads on from them as a chapter's overview does (`grader/building/book.py`).
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.building.places import sections_of
from grader.building.programs import block, printed, programs_of, recalled, sources_in
from grader.building.reading import VERSION
from grader.course.course import AuthorError, Course

PAGE = Path("site/myths.md")
FOLDER = PAGE.with_suffix("")

_DAY = re.compile(r"on (\d{4}-\d{2}-\d{2})\b")

_HEAD = """\
---
title: {title}
description: {description}
{more}---

<!-- Built by `undertorch build` from site/myths; edits here are lost. -->

# {heading}
"""

_OVERVIEW = """\
{count} things that are often said of PyTorch, in tutorials, in answers, at work. Each was believed by somebody sensible, mostly because it was true once, or is true nearly always. Each leads to what is true, and to a short program that shows it.
"""

_PAGE = """\
What is true stands below each claim. The program that shows it is folded, so that you can guess what it prints before you open it. All ran when this page was built: with torch {version}, on {day}, on a CPU. Each needs the `import` lines that it shows, `import torch`, and nothing else unless it says so.
"""


@dataclass(frozen=True)
class Myth:
    """One claim and the program that refutes it. Its name is its anchor."""

    name: str
    section: str
    claim: str
    truth: str
    code: str


def read_myths(path: Path) -> tuple[str, list[Myth]]:
    """Return a file's heading and its myths. Raises `AuthorError`."""
    head, *cells = re.split(r"^# %% (.+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    myths = []
    for marks, body in zip(cells[::2], cells[1::2], strict=True):
        anchor, _, section = marks.strip().partition(" ")
        comment = re.match(r"(?:#.*\n)+", body)
        if comment is None:
            raise AuthorError(f"{path}: {anchor} must begin with its claim, as a comment")
        text = re.sub(r"^# ?", "", comment[0], flags=re.MULTILINE)
        claim, _, truth = text.strip().partition("\n\n")
        if not truth:
            raise AuthorError(f"{path}: {anchor} says no truth below its claim")
        code = body[comment.end() :].strip()
        myths.append(Myth(anchor, section, _flowed(claim), _flowed(truth), code))
    title = head.removeprefix("#").partition(":")[0].strip()
    return title, myths


def _flowed(text: str) -> str:
    return " ".join(text.split())


def myths_pages(course: Course, *, run: bool = True) -> dict[Path, str]:
    """Return the pages of myths, by their paths; {} where a course has none.

    All programs are run; without `run` the pages in place say what they print. The day on a page
    changes only when something else does. Raises `AuthorError`.
    """
    read = sources_in(course.root / FOLDER, read_myths)
    if not read:
        return {}
    programs = list(programs_of(read).values())
    texts = printed(course, programs) if run else recalled(course.root / FOLDER, programs)
    pages = {PAGE: _overview([(path.stem, *one) for path, one in read.items()])}
    for (path, (title, myths)), outputs in zip(read.items(), texts, strict=True):
        sections = sections_of(course, path.stem)
        blocks = []
        for myth, output in zip(myths, outputs, strict=True):
            if sections and myth.section and myth.section not in sections:
                raise AuthorError(f"{path}: {myth.name}: no section {myth.section} in the chapter")
            heading = sections.get(myth.section)
            link = f"[{heading}](../chapters/{path.stem}.md#{myth.section})" if heading else ""
            blocks.append(_block(myth, output, link))
        where = FOLDER / f"{path.stem}.md"
        pages[where] = _dated(course.root / where, title, blocks)
    return pages


def _overview(chapters: Sequence[tuple[str, str, Sequence[Myth]]]) -> str:
    """The claims of all chapters, each with its old anchor on the link to where it stands now."""
    blocks = []
    for chapter, title, myths in chapters:
        claims = [
            f"- [“{one.claim}”](myths/{chapter}.md#{one.name}){{ #{one.name} .ut-moved }}"
            for one in myths
        ]
        blocks.append("\n".join([f"## {title}", "", *claims]))
    head = _HEAD.format(
        title="Myths",
        description="What is often said of PyTorch, and short programs that show otherwise",
        more="search:\n  boost: 0.5\n",  # the pages of the chapters say more of each
        heading="What everybody knows that is not so",
    )
    count = sum(len(myths) for _, _, myths in chapters)
    return "\n\n".join([head.rstrip(), _OVERVIEW.format(count=count).rstrip(), *blocks]) + "\n"


def _dated(path: Path, title: str, blocks: Sequence[str]) -> str:
    """Return a chapter's page: with the day that it has, if all else on it is the same."""
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    known = _DAY.search(before)
    head = _HEAD.format(
        title=json.dumps(f"Myths: {title}"),
        description=json.dumps(f"What is often said, and programs that show otherwise: {title}"),
        more="",
        heading=f"{title}: what is said, and is not so",
    )

    def page(day: str) -> str:
        said = _PAGE.format(version=VERSION, day=day)
        return "\n\n".join([head.rstrip(), said.rstrip(), *blocks]) + "\n"

    if known and page(known[1]) == before:
        return before
    return page(datetime.datetime.now(tz=datetime.UTC).date().isoformat())


def _block(myth: Myth, output: str, link: str) -> str:
    more = f" See *{link}*." if link else ""
    shown = block(myth.code, output)
    folded = "\n".join(f"    {line}".rstrip() for line in shown.splitlines())
    return (
        f"## “{myth.claim}” {{ #{myth.name} .myth }}\n\n"
        f'{myth.truth}{more}\n\n??? note "See for yourself"\n\n{folded}'
    )
