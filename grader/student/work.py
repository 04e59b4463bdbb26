"""What a student has written: the answers that a notebook and the files beside it hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grader.course.cells import Cell, Kind, code_cells
from grader.course.course import Chapter, CourseError
from grader.course.parameters import Values
from grader.submission.grade_call import variant_in
from grader.submission.program import is_stub, slice_program
from grader.submission.rebuild import Unreadable, read_notebook, rebuild
from grader.submission.solution_files import with_files
from grader.verdict.grading import Attempt


@dataclass(frozen=True)
class Work:
    """The attempts at a chapter's exercises, read from `notebook` and the files beside it.

    `files` are the exercises whose answer stands in a file; `notes` are for the student;
    `variants` are the values that the notebook names for exercises of a private variant.
    """

    chapter: Chapter
    notebook: Path
    attempts: Mapping[str, Attempt]
    files: frozenset[str]
    notes: Mapping[str, tuple[str, ...]]
    variants: Mapping[str, Values]
    cells: tuple[Cell, ...] = ()
    """What the attempts were cut from."""

    def with_answer(self, exercise: str, text: str) -> Attempt:
        """Return the attempt at an exercise with another answer in its cell."""
        cells = [
            replace(cell, source=text)
            if cell.kind is Kind.SOLUTION and cell.label == exercise
            else cell
            for cell in self.cells
        ]
        return Attempt(slice_program(exercise, list(self.attempts), cells), text)

    def judged(self, exercise: str) -> Path:
        """Return the file that holds the answer."""
        return (
            self.notebook.with_name(f"{exercise}.py") if exercise in self.files else self.notebook
        )

    def written(self, exercise: str) -> bool:
        """Say whether there is more than the stub."""
        source = self.attempts[exercise].source or ""
        return not is_stub(source, self.chapter.exercise(exercise).stub)


def read_work(chapter: Chapter, path: Path, *, alone: bool = False) -> Work:
    """Return what a notebook holds. Raises `CourseError` with what to do if it cannot be read.

    `alone` says that a file beside it is enough: the notebook need not be there.
    """
    path = path.resolve()  # a link to a notebook of one's own is fine
    try:
        if alone and not path.exists():
            notebook: dict[str, Any] = {"nbformat": 4, "cells": []}
        else:
            notebook = read_notebook(path)
        joined = with_files(chapter, notebook, path.parent)
        rebuilt = rebuild(chapter, joined.notebook)
    except Unreadable as error:
        raise CourseError(_what_to_do(chapter, path, str(error))) from None
    missing = f"`{chapter.name}.ipynb` is not there."
    notes = {
        exercise.id: (
            *(
                (missing,)
                if alone and not path.exists()
                else ()
                if exercise.id in joined.taken
                else rebuilt.notes.get(exercise.id, ())
            ),
            *joined.notes.get(exercise.id, ()),
            *rebuilt.notes.get("", ()),
        )
        for exercise in chapter.exercises
    }
    attempts = {
        name: Attempt(program, rebuilt.sources.get(name, ""))
        for name, program in rebuilt.programs.items()
    }
    cells = tuple(code_cells(rebuilt.notebook))
    variants = {name: variant_in(notebook["cells"], name) or {} for name in attempts}
    return Work(chapter, path, attempts, joined.taken, notes, variants, cells)


def _what_to_do(chapter: Chapter, path: Path, why: str) -> str:
    if not path.exists():
        return (
            f"There is no {path}. `undertorch learn --no-open` puts a fresh copy of "
            f"{chapter.id} there and leaves your other files alone."
        )
    return (
        f"{path} cannot be read: {why}. Jupyter keeps an older state beside it, in "
        "`.ipynb_checkpoints`, and `undertorch update` keeps copies in `kept`. To begin it anew, "
        "move the file away and run `undertorch learn --no-open`."
    )
