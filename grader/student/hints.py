"""An exercise's hints and its reference solution, as the course's notebooks hold them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from grader.course.answers import Role, read_answers
from grader.course.cells import grade_id_of, is_solution_cell
from grader.course.course import Chapter, read_reference
from grader.course.solution_marks import without_marks

_HINT = re.compile(
    r"<details>\s*<summary>\s*Hint\s+(\d+):\s*(.*?)</summary>(.*?)</details>", re.DOTALL
)


@dataclass(frozen=True)
class Hint:
    """One hint; its text is Markdown."""

    number: int
    title: str
    text: str


def hints_of(chapter: Chapter, exercise: str) -> list[Hint]:
    """Return the hints between an exercise's card and its solution cell, from vague to plain."""
    found: list[Hint] = []
    for cell in chapter.notebook["cells"]:
        if cell["cell_type"] == "markdown":
            found += [
                Hint(int(number), title.strip(), text.strip())
                for number, title, text in _HINT.findall(cell["source"])
            ]
        elif is_solution_cell(cell):
            if grade_id_of(cell) == exercise:
                return found
            found = []
    return []


def reference_of(chapter: Chapter, exercise: str) -> str:
    """Return the reference solution, without the marks that nbgrader needs."""
    source = next(cell.source for cell in read_reference(chapter) if cell.label == exercise)
    return without_marks(source)


def alternates_of(chapter: Chapter, exercise: str) -> list[tuple[str, str]]:
    """Return other right answers: what each is about, and its text."""
    answers = read_answers(chapter, chapter.exercise(exercise))
    return [(one.explanation, one.source) for one in answers if one.role is Role.ALTERNATE]
