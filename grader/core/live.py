"""`grade("id")` in a notebook: the verdict on what the kernel holds now."""

from __future__ import annotations

import linecache
import sys
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from grader.core.course import Chapter, CourseError, find_course
from grader.core.fork import Fork, Here
from grader.core.grading import Attempt, ExerciseGrader
from grader.core.probe import Probe, load_probes
from grader.core.program import Program
from grader.core.render import Report, Trouble

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
    verdict = grader.grade(
        live_attempt(exercise, names),
        lambda: Here(_probes(chapter), names),
        PRACTICE_SEED,
        lambda: Fork(_probes(chapter)),
    )
    return Report(verdict)


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
