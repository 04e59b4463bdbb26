"""`grade("id")` in a notebook: the verdict on what the kernel holds now."""

from __future__ import annotations

import inspect
import linecache
import sys
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from grader.course.cells import code_cells
from grader.course.course import Chapter, CourseError, find_course
from grader.course.parameters import Values, as_keywords
from grader.evidence.outcome import Outcome
from grader.feedback.render import Report, Trouble
from grader.inside import interrupts
from grader.inside.probe import Probe, load_probes
from grader.inside.process.budget import Budget, changed
from grader.student import cells_run, preparing
from grader.student.asking import ask_kernel, known_mistakes
from grader.student.contents import update_contents
from grader.student.folder import Folder
from grader.student.journal import folder_around, remember, verdict_entry
from grader.student.naming import named
from grader.student.next_up import what_next
from grader.student.practice import for_practice
from grader.student.settings import as_in_a_box
from grader.student.showing import Points, show
from grader.student.unready import edited_since, judged_source, name_asked_for, unready
from grader.submission.names import binds
from grader.submission.program import Program, is_stub
from grader.verdict.grading import Attempt, ExerciseGrader
from grader.verdict.known import PRACTICE_SEED
from grader.verdict.other_answers import naming
from grader.verdict.verdict import Verdict


def grade(exercise: object = None, **variant: Any) -> Points | None:
    """Grade what this kernel now defines for `exercise`, and show the verdict; it never raises.

    `variant` are the values of a private variant, as its grade cell names them. The points are
    returned where a program runs the notebook: nbgrader takes a grade cell's result for them.
    """
    try:
        # nothing of ours is ever left half done; waiting and the student's own code are interrupted
        with interrupts.held():
            preparing.finish()
            report = _graded(exercise, variant)
    except KeyboardInterrupt:
        report = Trouble("Interrupted before there was a verdict.")
    with interrupts.held():  # half a display is none
        points = show(report)
        interrupts.drop()
    return points


def _graded(given: object, variant: Values) -> Report | Trouble:
    """Return the verdict on an exercise, or why there is none."""
    try:
        chapter, exercise = named(find_course(), given, "grade")
        grader = grader_of(chapter, exercise, variant)
    except CourseError as error:
        return Trouble(str(error))
    names = vars(sys.modules["__main__"])
    cells = {cell.source.strip() for cell in code_cells(chapter.notebook)}
    attempt = live_attempt(exercise, names, cells, name_asked_for(grader.exercise))
    early = unready(chapter, grader.exercise, attempt, names, cells)
    if early is not None:
        return _report(chapter, early, judged_source(grader.exercise, attempt))
    budget = changed(Budget(), grader.exercise.budget)
    try:
        with as_in_a_box():
            verdict = grader.grade(
                attempt,
                lambda: ask_kernel(probes_of(chapter), names, budget),
                PRACTICE_SEED,
                *known_mistakes(probes_of(chapter), budget),
            )
    except CourseError as error:  # known answers are read when an attempt has failed
        return Trouble(str(error))
    interrupts.drop()  # there is a verdict: whoever interrupts now waited for it
    verdict = naming(verdict, _ran_as_well(chapter, attempt.program))
    verdict = replace(verdict, notes=(*verdict.notes, *edited_since(grader.exercise, attempt)))
    return _report(chapter, verdict, attempt.source)


def _ran_as_well(chapter: Chapter, program: Program) -> list[str]:
    """Return the exercises, but the program's own, that a cell of it answers."""
    texts = [text for label, text in program.parts if label not in program.given]
    others = [one.id for one in chapter.exercises if one.id != program.exercise]
    return [name for name in others if any(binds(text, name) for text in texts)]


def _report(chapter: Chapter, verdict: Verdict, source: str | None) -> Report:
    """Remember a verdict; return it as this student reads it, with what comes next."""
    folder = folder_around(Path.cwd())
    if verdict.outcome is not Outcome.NOT_RUN and not _untouched(chapter, verdict, source):
        with suppress(OSError, CourseError):  # no verdict is lost because a disk is full
            remember(folder, verdict_entry(chapter.id, verdict, source, "notebook"))
            if folder is not None:
                update_contents(find_course(), Folder(folder))
    return Report(for_practice(verdict), what_next(chapter, verdict, folder))


def _untouched(chapter: Chapter, verdict: Verdict, source: str | None) -> bool:
    """Say whether a verdict is on the stub: to run all cells is no attempt at any."""
    stub = chapter.exercise(verdict.exercise).stub
    return verdict.outcome is Outcome.NOT_ATTEMPTED and (source is None or is_stub(source, stub))


@cache
def probes_of(chapter: Chapter) -> dict[str, Probe]:
    """Return a chapter's probes, loaded once."""
    return load_probes(chapter.probes)


def grader_of(chapter: Chapter, exercise: str, variant: Values) -> ExerciseGrader:
    """Return what grades an exercise in this kernel."""
    key = chapter, exercise, as_keywords(variant)
    if key not in _graders:
        found = chapter.exercise(exercise, variant)
        _graders[key] = ExerciseGrader(chapter, found, probes_of(chapter))
    return _graders[key]


_graders: dict[tuple[Chapter, str, str], ExerciseGrader] = {}
"""Kept from one run of a grade cell to the next: a grader learns what the known mistakes do."""


def live_attempt(exercise: str, names: dict[str, Any], given: set[str], name: str = "") -> Attempt:
    """Return the attempt that a kernel holds: the text of the cells that define its names.

    `given` are the texts of the released notebook's cells; `name` is what the answer defines, where
    that is not the exercise's own name.
    """
    cells: dict[str, str] = {}
    pending, seen = [name or exercise], set()
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
        cells = _last_tried(name or exercise, names)
    own = next(iter(cells.values()), None)
    released = frozenset(label for label, text in cells.items() if text.strip() in given)
    return Attempt(Program(exercise, tuple(cells.items()), released), own, loaded=True)


def _last_tried(exercise: str, names: dict[str, Any]) -> dict[str, str]:
    """Return the last cell that binds the name, from the kernel's history, by what a traceback shows.

    `name = torch.something` has no code of its own.
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


cells_run.watch()  # from the cell that imports `grade` on: a chapter's first


def _look_here() -> None:
    """Have what the chapter needs that this kernel's folder is called after, before anyone waits for it."""
    chapter = find_course().chapter(Path.cwd().name)
    for module in chapter.preload:
        preparing.also(partial(import_module, module))
    preparing.also(partial(probes_of, chapter))


preparing.begin(_look_here)  # whoever imports `grade` is in a notebook's first cell
