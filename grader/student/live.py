"""`grade("id")` in a notebook: the verdict on what the kernel holds now."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import torch

from grader.course.cells import code_cells, grade_id_of
from grader.course.course import Chapter, CourseError, find_course
from grader.course.parameters import Values, as_keywords
from grader.feedback.render import Report, Trouble
from grader.inside import interrupts
from grader.inside.probe import Probe, load_probes
from grader.inside.process.budget import Budget, changed
from grader.student import preparing
from grader.student.asking import ask_kernel, known_mistakes
from grader.student.journal import folder_around, verdict_entry, write
from grader.submission.names import binds
from grader.submission.program import Program
from grader.submission.rebuild import Unreadable, read_notebook
from grader.verdict.grading import Attempt, ExerciseGrader
from grader.verdict.known import PRACTICE_SEED
from grader.verdict.verdict import Verdict


def grade(exercise: str, **variant: Any) -> Report | Trouble:
    """Grade what this kernel now defines for `exercise`. Show the result; it never raises.

    `variant` are the values of a private variant, as its grade cell names them.
    """
    try:
        # nothing of ours is ever left half done; waiting and the student's own code are interrupted
        with interrupts.held():
            preparing.finish()
            return _graded(exercise, variant)
    except KeyboardInterrupt:
        return Trouble("Interrupted before there was a verdict.")


def _graded(exercise: str, variant: Values) -> Report | Trouble:
    try:
        chapter = find_course().chapter_of(exercise)
        grader = _grader(chapter, exercise, variant)
    except CourseError as error:
        return Trouble(str(error))
    names = vars(sys.modules["__main__"])
    given = {cell.source.strip() for cell in code_cells(chapter.notebook)}
    attempt = live_attempt(exercise, names, given)
    budget = changed(Budget(), grader.exercise.budget)
    threads = torch.get_num_threads()
    # as in the box; and on a busy machine two threads wait for each other, 8 ms per operation
    torch.set_num_threads(1)
    try:
        verdict = grader.grade(
            attempt,
            lambda: ask_kernel(_probes(chapter), names, budget),
            PRACTICE_SEED,
            *known_mistakes(_probes(chapter), budget),
        )
    except CourseError as error:  # known answers are read when an attempt has failed
        return Trouble(str(error))
    finally:
        torch.set_num_threads(threads)
    interrupts.drop()  # there is a verdict: whoever interrupts now waited for it
    _remember(chapter, verdict, attempt)
    return Report(replace(verdict, notes=(*verdict.notes, *_stale(exercise, attempt))))


def _remember(chapter: Chapter, verdict: Verdict, attempt: Attempt) -> None:
    """Write the verdict into the student's journal, if the kernel works in a student's folder."""
    with suppress(OSError):  # no verdict is lost because a disk is full
        folder = folder_around(Path.cwd())
        if folder is not None:
            write(folder, [verdict_entry(chapter.id, verdict, attempt.source, "notebook")])


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
    saved = [cell["source"] for cell in cells if grade_id_of(cell) == exercise]
    if not saved or saved[-1].strip() == attempt.source.strip():
        return ()
    return (
        "The saved notebook holds another answer than the one that was graded. Save it; "
        "or, if you changed the cell after you ran it, run it again first.",
    )


@cache
def _probes(chapter: Chapter) -> dict[str, Probe]:
    return load_probes(chapter.probes)


def _grader(chapter: Chapter, exercise: str, variant: Values) -> ExerciseGrader:
    key = chapter, exercise, as_keywords(variant)
    if key not in _graders:
        found = chapter.exercise(exercise, variant)
        _graders[key] = ExerciseGrader(chapter, found, _probes(chapter))
    return _graders[key]


_graders: dict[tuple[Chapter, str, str], ExerciseGrader] = {}
"""Kept from one run of a grade cell to the next: a grader learns what the known mistakes do."""


def live_attempt(exercise: str, names: dict[str, Any], given: set[str]) -> Attempt:
    """Return the attempt that a kernel holds: the text of the cells that define its names.

    `given` are the texts of the released notebook's cells.
    """
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
    if not cells:
        cells = _last_tried(exercise, names)
    own = next(iter(cells.values()), None)
    released = frozenset(label for label, text in cells.items() if text.strip() in given)
    return Attempt(Program(exercise, tuple(cells.items()), released), own, loaded=True)


def _last_tried(exercise: str, names: dict[str, Any]) -> dict[str, str]:
    """Return the last cell that binds the name, from the kernel's history, by what a traceback shows.

    The stub of a class raises before it binds; `name = torch.something` has no code of its own.
    """
    history = names.get("In")
    texts = [str(text) for text in history] if isinstance(history, list) else []
    numbers = [number for number, text in enumerate(texts) if binds(text, exercise)]
    return {f"In [{numbers[-1]}]": texts[numbers[-1]]} if numbers else {}


def _codes(value: object, met: frozenset[type] = frozenset()) -> list[CodeType]:
    """Return the code of a function, under its decorators, or of a class's methods.

    `met` are the classes around it: a `torch.autograd.Function` and its node refer to each other.
    """
    value = inspect.unwrap(value) if callable(value) else value
    if isinstance(value, FunctionType):
        return [value.__code__]
    if isinstance(value, type) and value not in met:
        members = vars(value).values()
        return [code for member in members for code in _codes(member, met | {value})]
    return []


def _look_here() -> None:
    """Read the chapter that this kernel's folder is called after, before anyone waits for it."""
    with suppress(CourseError, OSError, Unreadable):
        chapter = find_course().chapter(Path.cwd().name)
        _probes(chapter)


preparing.begin(_look_here)  # whoever imports `grade` is in a notebook's first cell
