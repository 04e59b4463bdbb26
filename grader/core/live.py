"""`grade("id")` in a notebook: the verdict on what the kernel holds now."""

from __future__ import annotations

import linecache
import os
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import torch

from grader.core.course import Chapter, CourseError, find_course
from grader.core.fork import Fork, Here
from grader.core.grading import Attempt, ExerciseGrader
from grader.core.probe import Probe, load_probes
from grader.core.program import Program
from grader.core.render import Report, Trouble
from grader.core.submission import Unreadable, read_notebook

PRACTICE_SEED = 0
"""Inputs in a live notebook are the same every time, so that a failure stays put while it is
being mended. A graded run draws its own."""


def grade(exercise: str) -> Report | Trouble:
    """Grade what this kernel now defines for `exercise`. Show the result; it never raises."""
    try:
        chapter = find_course().chapter_of(exercise)
        grader = _grader(chapter, exercise)
    except CourseError as error:
        return Trouble(str(error))
    names = vars(sys.modules["__main__"])
    attempt = live_attempt(exercise, names)
    threads = torch.get_num_threads()
    # as in the box; and on a busy machine two threads wait for each other, 8 ms per operation
    torch.set_num_threads(1)
    try:
        verdict = grader.grade(
            attempt,
            lambda: Here(_probes(chapter), names),
            PRACTICE_SEED,
            lambda: Fork(_probes(chapter)),
        )
    except KeyboardInterrupt:
        return Trouble("Interrupted before there was a verdict.")
    finally:
        torch.set_num_threads(threads)
    return Report(replace(verdict, notes=(*verdict.notes, *_stale(exercise, attempt))))


def _stale(exercise: str, attempt: Attempt) -> tuple[str, ...]:
    """Warn if the saved notebook holds another text than the one that was run.

    Jupyter names the notebook of a kernel in `JPY_SESSION_NAME`; elsewhere nothing is said.
    """
    path = Path(os.environ.get("JPY_SESSION_NAME", ""))
    if attempt.source is None or path.suffix != ".ipynb":
        return ()
    try:
        cells = read_notebook(path)["cells"]
    except Unreadable:
        return ()
    saved = [
        cell["source"]
        for cell in cells
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == exercise
    ]
    if not saved or saved[-1].strip() == attempt.source.strip():
        return ()
    return ("The cell was changed since it was last run. Run it again, then this one.",)


@cache
def _probes(chapter: Chapter) -> dict[str, Probe]:
    return load_probes(chapter.probes)


@cache
def _grader(chapter: Chapter, exercise: str) -> ExerciseGrader:
    return ExerciseGrader(chapter, chapter.exercise(exercise), _probes(chapter))


def live_attempt(exercise: str, names: dict[str, Any]) -> Attempt:
    """Return the attempt that a kernel holds: the text of the cells that define its names."""
    cells: dict[str, str] = {}
    pending, seen = [exercise], set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        for code in _codes(names.get(name)):
            source = "".join(linecache.getlines(code.co_filename))
            if (source and not code.co_filename.endswith(".py")) or "ipykernel" in code.co_filename:
                cells[code.co_filename] = source
                pending += [used for used in code.co_names if used in names]
    own = next(iter(cells.values()), None) if _codes(names.get(exercise)) else None
    return Attempt(Program(exercise, tuple(cells.items())), own, loaded=True)


def _codes(value: object) -> list[CodeType]:
    """Return the code of a function, or of a class's methods."""
    if isinstance(value, FunctionType):
        return [value.__code__]
    if isinstance(value, type):
        return [code for member in vars(value).values() for code in _codes(member)]
    return []
