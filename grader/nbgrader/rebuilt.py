"""Rebuilt notebooks on their way through nbgrader's files: how one is made of a submission, which
attempts at the exercises one holds, and what tells one from another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from traitlets.log import get_logger

from grader.course.cells import Kind, code_cells
from grader.course.course import Chapter
from grader.nbgrader.intake import printable
from grader.nbgrader.resubmitted import digest_of
from grader.submission.grade_call import other_variants
from grader.submission.program import slice_program
from grader.submission.rebuild import Unreadable, read_notebook, rebuild
from grader.submission.solution_files import with_files
from grader.verdict.grading import Attempt

INTAKE = "undertorch_intake"
"""Metadata of a notebook that is rebuilt and not graded yet: what was noted on the way."""


def take_notebook(
    chapter: Chapter, released: Mapping[str, Any], path: Path, student: str, notes: list[str]
) -> NotebookNode:
    """Return a submission rebuilt from the released notebook; that one alone if it is unreadable.

    `released` is that notebook as the gradebook knows it.
    """
    found = _the_notebook(path)
    said: dict[str, list[str]] = {"": list(notes)}
    handed_in = digest_of(path.parent)
    # in the order of their names, as nbgrader writes them in between
    intake: dict[str, Any] = {"handed in": handed_in, "notes": said, "student": student}
    try:
        joined = with_files(chapter, read_notebook(found), found.parent)
        rebuilt = rebuild(chapter, joined.notebook, released)
        notebook = rebuilt.notebook
        intake["other variants"] = other = other_variants(chapter, joined.notebook["cells"])
        notes_of = {name: (sentence,) for name, sentence in other.items()}
        for key, more in [*rebuilt.notes.items(), *joined.notes.items(), *notes_of.items()]:
            said.setdefault(key, []).extend(more)
    except Unreadable as error:
        notebook, intake["unreadable"] = dict(released), str(error)
    except Exception as error:  # whatever it was, no submission may keep an old score by it
        get_logger().exception("%s: the notebook could not be rebuilt", student)
        notebook = dict(released)
        intake["unreadable"] = f"rebuilding it failed ({type(error).__name__})"
    if "unreadable" in intake:
        get_logger().warning("%s: %s. It needs review.", student, intake["unreadable"])
    elif found != path:
        for exercise in chapter.exercises:
            name = f"`{printable(found.name)}`, the only notebook handed in, was graded."
            said.setdefault(exercise.id, []).append(name)
    node: NotebookNode = nbformat.from_dict(notebook)
    node.metadata[INTAKE] = intake
    return node


def _the_notebook(path: Path) -> Path:
    """Return the notebook to grade: the one of that name, or the only one under another."""
    if path.exists() or path.is_symlink():
        return path
    others = [other for other in path.parent.glob("*.ipynb") if not other.is_symlink()]
    return others[0] if len(others) == 1 else path


def attempts_in(chapter: Chapter, nb: NotebookNode) -> dict[str, Attempt]:
    """Return the attempt at each exercise that a rebuilt notebook holds."""
    cells = code_cells(nb)
    names = [exercise.id for exercise in chapter.exercises]
    sources = {cell.label: cell.source for cell in cells if cell.kind is Kind.SOLUTION}
    return {
        name: Attempt(slice_program(name, names, cells), sources.get(name, "")) for name in names
    }


def notebook_digest(nb: NotebookNode) -> str:
    """Return a digest of a notebook's text."""
    text = "\0".join(cell.source for cell in nb.cells)
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()
