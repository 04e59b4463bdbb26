"""`hint("id")` and `solution("id")` in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from IPython.display import display

from grader.course.course import Chapter, CourseError, find_course
from grader.feedback.render import Trouble
from grader.student import journal
from grader.student.help import NOTEBOOK, Kind, Page, next_hint, open_solution
from grader.student.naming import named


def hint(exercise: object = None, number: int = 0) -> None:
    """Show the next hint of an exercise, from vague to plain, or the hint of that number.

    It remembers which you saw. Without a name: of the exercise that you tried last.
    """
    folder = journal.folder_around(Path.cwd())
    try:
        chapter, name = _meant(exercise, folder, "hint")
        _show(next_hint(chapter, name, number, folder, NOTEBOOK))
    except (CourseError, OSError) as error:
        _show_trouble(error)


def solution(exercise: object = None, *, others: bool = False, anyway: bool = False) -> None:
    """Show the reference solution, once an answer of yours was graded; with `others`, more roads.

    `anyway` shows it without an attempt. Without a name: of the exercise that you tried last.
    """
    folder = journal.folder_around(Path.cwd())
    try:
        chapter, name = _meant(exercise, folder, "solution")
        page = open_solution(chapter, name, folder, NOTEBOOK, others=others, anyway=anyway)
        _show(page)
    except (CourseError, OSError) as error:
        _show_trouble(error)


def _meant(given: object, folder: Path | None, call: str) -> tuple[Chapter, str]:
    last = journal.last_tried(journal.recall(folder)) if given is None else given
    return named(find_course(), last, call)


@dataclass(frozen=True)
class Shown:
    """A page as Markdown; where that is not rendered, it reads as it is."""

    page: Page

    def __repr__(self) -> str:
        return "\n\n".join(text for _, text in self.page.parts)

    def _repr_markdown_(self) -> str:
        forms = {Kind.HEADING: "**{}**", Kind.TEXT: "{}", Kind.CODE: "```python\n{}\n```"}
        return "\n\n".join(forms[kind].format(text) for kind, text in self.page.parts)


def _show(page: Page) -> None:
    display(Shown(page))


def _show_trouble(error: Exception) -> None:
    display(Trouble(str(error)))
