"""The line that is wrong in a kept submission: its variants run in the box, as it did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import nbformat

from grader.box.aside import Exceeded, Failed
from grader.box.box import Box
from grader.box.mounts import refuse_shown
from grader.box.tiers import BoxUnavailable
from grader.course.cells import Kind, code_cells
from grader.course.course import Chapter, CourseError
from grader.evidence.store import Store
from grader.evidence.wire.channel import Transport
from grader.inside.probe import load_probes
from grader.inside.process.budget import Budget, changed
from grader.instructor.explain import kept_record
from grader.nbgrader.reading import Reader
from grader.nbgrader.run import notebook_digest
from grader.submission.program import lines_above, slice_program
from grader.verdict.grading import Attempt, ExerciseGrader
from grader.verdict.locate import Found, Progress, Subject, locate


def locate_kept(
    chapter: Chapter, student: str, exercise: str, seconds: float, progress: Progress
) -> Found:
    """Look for the wrong line of a graded answer, with the inputs that it was graded on.

    Raises `CourseError` if nothing is kept of it, or there is no box.
    """
    record = kept_record(chapter, Store(chapter.root, student, chapter.id), student)
    path = chapter.root / "autograded" / student / chapter.id / f"{chapter.name}.ipynb"
    if not path.is_file():
        raise CourseError(f"The autograded notebook is gone: {path.relative_to(chapter.root)}.")
    notebook = nbformat.read(path, as_version=4)
    if notebook_digest(notebook) != record["submission"]:
        raise CourseError("The autograded notebook is not the one that was graded.")
    try:  # a text that is slow to read is not read here
        with Reader(chapter, chapter.notebook) as reader:
            reader.attempts(notebook)
    except (Exceeded, Failed) as error:
        raise CourseError(f"Its text cannot be read: reading it {error}.") from None
    cells = code_cells(notebook)
    names = [one.id for one in chapter.exercises]

    def with_text(text: str) -> Attempt:
        changed_cells = [
            replace(cell, source=text)
            if cell.kind is Kind.SOLUTION and cell.label == exercise
            else cell
            for cell in cells
        ]
        return Attempt(slice_program(exercise, names, changed_cells), text)

    sources = {cell.label: cell.source for cell in cells if cell.kind is Kind.SOLUTION}
    attempt = with_text(sources.get(exercise, ""))
    grader = ExerciseGrader(chapter, chapter.exercise(exercise), load_probes(chapter.probes))
    budget = changed(Budget(), grader.exercise.budget)
    try:
        refuse_shown(chapter.root)
        with Box(chapter.probes, chapter.preload, budget) as box:
            subject = _in_box(attempt, exercise, with_text, box, budget)
            return locate(grader, subject, record["seed"], seconds=seconds, progress=progress)
    except BoxUnavailable as error:
        raise CourseError(f"The box cannot be had: {error}") from None


def _in_box(
    attempt: Attempt,
    exercise: str,
    with_text: Callable[[str], Attempt],
    box: Box,
    budget: Budget,
) -> Subject:
    def open_variant(attempt: Attempt, patience: float) -> Transport:
        return box.open(replace(budget, wall_seconds=min(budget.wall_seconds, patience)))

    text = dict(attempt.program.parts).get(exercise, "")
    return Subject(
        attempt,
        text,
        with_text,
        open_variant,
        # in a box nothing traces: what could tell of lines would be the student's to falsify
        lambda attempt, patience: (open_variant(attempt, patience), None),
        lines_above(attempt.source or "", text),
    )
