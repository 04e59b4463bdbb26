"""`locate("id")` in a notebook, and what `undertorch locate` asks of a saved one."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path

import torch
from IPython.display import clear_output, display

from grader.course.cells import code_cells
from grader.course.course import CourseError, find_course
from grader.feedback.render import Trouble
from grader.inside import interrupts, serve
from grader.inside.process.budget import Budget, changed
from grader.student import journal, preparing
from grader.student.asking import may_fork
from grader.student.help import NOTEBOOK, Page
from grader.student.live import grader_of, live_attempt, probes_of
from grader.student.located import located
from grader.student.naming import named
from grader.student.search import in_forks, in_forks_of_kernel
from grader.student.settings import as_in_a_box
from grader.student.stuck import Shown
from grader.student.unready import judged_source, name_asked_for, unready
from grader.student.work import Work
from grader.verdict.grading import ExerciseGrader
from grader.verdict.known import PRACTICE_SEED
from grader.verdict.locate import SECONDS, Found, Progress
from grader.verdict.locate import locate as search

_SHOWN_EVERY = 0.5
"""Seconds between two looks at how far it is."""


def locate(exercise: object = None, *, seconds: float = SECONDS, **variant: object) -> None:
    """Look for the line of your answer where one small change makes every check pass.

    It says the line; asked again of the same answer, the part of it; then the change. It takes
    `seconds` at most; an interrupt ends it with what was found. Without a name: of the exercise that
    you tried last. It changes no points. `variant` is as in `grade`.
    """
    try:
        with interrupts.held():
            preparing.finish()
            shown: object = Shown(_located(exercise, variant, seconds, _telling()))
            interrupts.drop()
    except (CourseError, OSError) as error:
        shown = Trouble(str(error))
    except KeyboardInterrupt:
        shown = Trouble("Interrupted before anything was found.")
    clear_output(wait=True)
    display(shown)


def _located(given: object, variant: dict[str, object], seconds: float, progress: Progress) -> Page:
    folder = journal.folder_around(Path.cwd())
    last = journal.last_tried(journal.recall(folder)) if given is None else given
    chapter, exercise = named(find_course(), last, "locate")
    grader = grader_of(chapter, exercise, variant)
    names = vars(sys.modules["__main__"])
    cells = {cell.source.strip() for cell in code_cells(chapter.notebook)}
    attempt = live_attempt(exercise, names, cells, name_asked_for(grader.exercise))
    early = unready(chapter, grader.exercise, attempt, names, cells)
    if early is not None or not attempt.program.parts:
        said = early.summary.what if early and early.summary else "Run its cell first."
        raise CourseError(f"There is no answer to look into. {said}")
    if sys.platform != "linux" or not may_fork():
        raise CourseError(
            f"This kernel cannot be forked, so no variant is tried here. Save the notebook and, in a "
            f"terminal: `undertorch locate {exercise}`"
        )
    budget = changed(Budget(), grader.exercise.budget)
    cell = judged_source(grader.exercise, attempt) or ""
    with as_in_a_box():
        subject = in_forks_of_kernel(attempt, cell, probes_of(chapter), budget, names)
        found = search(grader, subject, PRACTICE_SEED, seconds=seconds, progress=progress)
    return located(found, chapter.id, exercise, attempt.source or "", folder, NOTEBOOK)


def progress_text(tried: int, left: float) -> str:
    """Return how far a search is."""
    return f"{tried} changes tried, {max(left, 0):.0f} s left"


def _telling() -> Progress:
    """Return what shows in the cell how far it is, until something else is shown."""
    last = 0.0

    def tell(tried: int, left: float) -> None:
        nonlocal last
        if time.monotonic() - last > _SHOWN_EVERY:
            last = time.monotonic()
            clear_output(wait=True)
            display({"text/plain": f"Looking: {progress_text(tried, left)}"}, raw=True)

    return tell


def locate_in(work: Work, exercise: str, seconds: float, progress: Progress) -> Found:
    """Look for the wrong line of an answer that a notebook's file, or a file beside it, holds."""
    torch.set_num_threads(1)  # as in `check`
    chapter = work.chapter
    probes = serve.prepare(chapter.probes, chapter.preload)
    grader = ExerciseGrader(chapter, chapter.exercise(exercise, work.variants[exercise]), probes)
    if not work.written(exercise):
        return Found(why="The cell still holds its stub.")
    budget = changed(Budget(), grader.exercise.budget)
    subject = in_forks(
        work.attempts[exercise], exercise, partial(work.with_answer, exercise), probes, budget
    )
    with interrupts.held():
        return search(grader, subject, PRACTICE_SEED, seconds=seconds, progress=progress)
