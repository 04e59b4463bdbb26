"""The site's page about the trial: what the checks of each exercise reject, as the ledgers say."""

from __future__ import annotations

from pathlib import Path

from grader.course.course import Chapter, Course
from grader.files import write_atomically
from grader.proving.ledger import Row, read_ledger
from grader.verdict.torch_internals import VERIFIED

PAGE = Path("site/trial.md")
"""Where the page is in a course."""

_COLUMNS = ("points", "checks", "mistakes", "alternates", "mutants", "killed", "equivalent")

_HEAD = f"""---
description: What the checks of each exercise reject, counted
---

# The graders on trial

Made by `make prove` with torch {VERIFIED}.

- **Mistakes** are known wrong answers. Each is rejected, and with its own explanation.
- **Alternates** are right answers by other roads. Each gets every point, as the reference does.
- **Mutants** are the reference solution with one small thing changed: an operator, a number, a
  condition, a statement left out. One that survived would show what no check tests; none does.
- **Equivalent** mutants change nothing that a student could be asked for. They are listed by hand,
  with the reason, in `equivalent.toml`.

The stub of each exercise scores 0 as *not attempted*, the built-in is *blocked*, and answers that
know nothing (`return None`, the first argument, zeros) score 0."""


def trial_page(course: Course) -> str:
    """Return the page in Markdown: a table for each chapter whose exercises are all proved."""
    sections = [_HEAD]
    for chapter in course.chapters():
        rows = read_ledger(chapter)
        if all(exercise.id in rows for exercise in chapter.exercises):
            sections.append(f"## {chapter.card['title']}\n\n{_table(chapter, rows)}")
    return "\n\n".join(sections) + "\n"


def write_page(course: Course) -> None:
    """Write the page where the course has a site."""
    if (course.root / PAGE.parent).is_dir():
        write_atomically(course.root / PAGE, trial_page(course))


def _table(chapter: Chapter, rows: dict[str, Row]) -> str:
    counts = {f"`{e.id}`": _counts(int(e.points), rows[e.id]) for e in chapter.exercises}
    counts["**all**"] = [sum(column) for column in zip(*counts.values(), strict=True)]
    lines = [("exercise", *_COLUMNS), ("---", *["--:"] * len(_COLUMNS))]
    lines += [(name, *map(str, numbers)) for name, numbers in counts.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _counts(points: int, row: Row) -> list[int]:
    known = [points, row.checks, row.mistakes, row.alternates]
    return [*known, row.mutants, row.mutants - row.equivalent, row.equivalent]
