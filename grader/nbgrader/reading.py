"""Where submissions are read: in a process of its own, which has limits. Not one text of a student is
parsed, compiled or searched in the process that grades and keeps the gradebook.

What comes back is data: a notebook rebuilt from the released one, and for each exercise its program
and what the program's text says. What goes over a limit is unreadable, and a person has to look.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import nbformat
from nbformat import NotebookNode
from traitlets.log import get_logger

from grader.box.aside import Aside, Exceeded, Failed
from grader.course.cells import Cell, Kind, code_cells
from grader.course.course import Chapter
from grader.nbgrader.intake import printable
from grader.nbgrader.resubmitted import digest_of
from grader.submission.grade_call import other_variants
from grader.submission.program import Program, slice_program
from grader.submission.reading import Reading, read_text
from grader.submission.rebuild import Unreadable, read_notebook, rebuild
from grader.submission.solution_files import with_files
from grader.verdict.grading import Attempt

INTAKE = "undertorch_intake"
"""Metadata of a notebook that is rebuilt and not graded yet: what was noted on the way."""


class Reader:
    """Reads submissions of one chapter. `released` is its notebook as the gradebook knows it."""

    def __init__(self, chapter: Chapter, released: Mapping[str, Any]) -> None:
        self._chapter = chapter
        self._released = released
        self._aside: Aside | None = None
        self._last: tuple[list[Cell], dict[str, Attempt]] | None = None

    def take(self, path: Path, student: str, notes: Sequence[str]) -> NotebookNode:
        """Return a submission rebuilt from the released notebook; that one alone if it is unreadable.

        path: where the notebook should be. notes: what was noted before, for its record
        """
        intake: dict[str, Any] = {
            "handed in": digest_of(path.parent),
            "notes": {"": list(notes)},
            "student": student,
        }  # in the order of their names, as nbgrader writes them in between
        self._last = None
        try:
            taken = self._ask({"take": str(path)})
        except Exceeded as error:
            taken = {"unreadable": f"reading it {error}"}
        except Failed as error:  # whatever it was, no submission may keep an old score by it
            get_logger().error("%s: it could not be rebuilt\n%s", student, error.trace)
            taken = {"unreadable": f"rebuilding it failed ({error})"}
        if "unreadable" in taken:
            intake["unreadable"] = taken["unreadable"]
            get_logger().warning("%s: %s. It needs review.", student, intake["unreadable"])
        else:
            intake["other variants"] = taken["other variants"]
            for key, more in taken["notes"]:
                intake["notes"].setdefault(key, []).extend(more)
        node: NotebookNode = nbformat.from_dict(taken.get("notebook", dict(self._released)))
        if "attempts" in taken:
            # grading asks for them next: they need not be read again
            self._last = code_cells(node), self._attempts(taken["attempts"])
        node.metadata[INTAKE] = intake
        return node

    def attempts(self, notebook: Mapping[str, Any]) -> dict[str, Attempt]:
        """Return the attempt at each exercise that a rebuilt notebook holds.

        Raises `Exceeded` and `Failed`.
        """
        cells = code_cells(notebook)
        if self._last is None or self._last[0] != cells:
            data = [[cell.kind.value, cell.label, cell.source] for cell in cells]
            self._last = cells, self._attempts(self._ask({"cells": data}))
        return self._last[1]

    def _attempts(self, data: Mapping[str, Any]) -> dict[str, Attempt]:
        found = {}
        for name, one in data.items():
            parts = tuple((label, text) for label, text in one["parts"])
            reading = Reading.from_data(one["reading"], self._chapter.exercise(name).off_limits)
            program = Program(name, parts, frozenset(one["given"]))
            found[name] = Attempt(program, one["source"], reading=reading)
        return found

    def _ask(self, request: Mapping[str, Any]) -> Any:
        if self._aside is None:
            # What it has read of the course's own cells before the fork, each process knows.
            _read_attempts(self._chapter, code_cells(self._released))
            self._aside = Aside(lambda asked: _answer(self._chapter, self._released, asked))
        return self._aside.ask(request)

    def close(self) -> None:
        """End the process."""
        if self._aside is not None:
            self._aside.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# --- in the process that reads ---------------------------------------------------------------


def _answer(
    chapter: Chapter, released: Mapping[str, Any], asked: Mapping[str, Any]
) -> dict[str, Any]:
    if "take" in asked:
        return _take(chapter, released, Path(asked["take"]))
    cells = [Cell(Kind(kind), label, source) for kind, label, source in asked["cells"]]
    return _read_attempts(chapter, cells)


def _take(chapter: Chapter, released: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return a submission as data: rebuilt, with notes, its variants, its attempts; or why not."""
    found = _the_notebook(path)
    try:
        joined = with_files(chapter, read_notebook(found), found.parent)
        rebuilt = rebuild(chapter, joined.notebook, released)
    except Unreadable as error:
        return {"unreadable": str(error)}
    other = other_variants(chapter, joined.notebook["cells"])
    notes = [*rebuilt.notes.items(), *joined.notes.items()]
    notes += [(name, (sentence,)) for name, sentence in other.items()]
    if found != path:
        name = f"`{printable(found.name)}`, the only notebook handed in, was graded."
        notes += [(exercise.id, (name,)) for exercise in chapter.exercises]
    attempts = _read_attempts(chapter, code_cells(rebuilt.notebook))
    return {
        "notebook": rebuilt.notebook,
        "notes": notes,
        "other variants": other,
        "attempts": attempts,
    }


def _the_notebook(path: Path) -> Path:
    """Return the notebook to grade: the one of that name, or the only one under another."""
    if path.exists() or path.is_symlink():
        return path
    others = [other for other in path.parent.glob("*.ipynb") if not other.is_symlink()]
    return others[0] if len(others) == 1 else path


def _read_attempts(chapter: Chapter, cells: Iterable[Cell]) -> dict[str, Any]:
    """Return the attempts that a rebuilt notebook's cells hold, and what their text says."""
    known = list(cells)
    names = [exercise.id for exercise in chapter.exercises]
    sources = {cell.label: cell.source for cell in known if cell.kind is Kind.SOLUTION}
    found = {}
    for exercise in chapter.exercises:
        source = sources.get(exercise.id, "")
        program = slice_program(exercise.id, names, known)
        try:
            reading = read_text(program, source, exercise.stub, exercise.off_limits)
        except MemoryError:
            raise
        except Exception as error:  # whatever it was, the other exercises can be graded
            get_logger().exception("What is written for %s could not be read", exercise.id)
            reading = Reading(trouble=f"reading it failed ({type(error).__name__})")
        found[exercise.id] = {
            "source": source,
            "parts": program.parts,
            "given": sorted(program.given),
            "reading": reading.to_data(exercise.off_limits),
        }
    return found
