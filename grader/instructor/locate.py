"""The line that is wrong in a kept submission: its variants run in the box, as it did."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from grader.box.box import Box
from grader.box.mounts import refuse_shown
from grader.box.tiers import BoxUnavailable
from grader.course.course import Chapter, CourseError
from grader.evidence.store import Store
from grader.evidence.wire.channel import Transport
from grader.inside.probe import load_probes
from grader.inside.process.budget import Budget, changed
from grader.instructor.explain import kept_record, kept_work
from grader.student.work import Work
from grader.submission.program import lines_above
from grader.verdict.grading import Attempt, ExerciseGrader
from grader.verdict.locate import Found, Progress, Subject, locate


def locate_kept(
    chapter: Chapter, student: str, exercise: str, seconds: float, progress: Progress
) -> Found:
    """Look for the wrong line of a graded answer, with the inputs that it was graded on.

    Raises `CourseError` if nothing is kept of it, or there is no box.
    """
    record = kept_record(chapter, Store(chapter.root, student, chapter.id), student)
    work = kept_work(chapter, record)
    grader = ExerciseGrader(chapter, chapter.exercise(exercise), load_probes(chapter.probes))
    budget = changed(Budget(), grader.exercise.budget)
    try:
        refuse_shown(chapter.root)
        with Box(chapter.probes, chapter.preload, budget) as box:
            subject = _in_box(work, exercise, box, budget)
            return locate(grader, subject, record["seed"], seconds=seconds, progress=progress)
    except BoxUnavailable as error:
        raise CourseError(f"The box cannot be had: {error}") from None


def _in_box(work: Work, exercise: str, box: Box, budget: Budget) -> Subject:
    def open_variant(attempt: Attempt, patience: float) -> Transport:
        return box.open(replace(budget, wall_seconds=min(budget.wall_seconds, patience)))

    attempt = work.attempts[exercise]
    text = dict(attempt.program.parts).get(exercise, "")
    return Subject(
        attempt,
        text,
        partial(work.with_answer, exercise),
        open_variant,
        # in a box nothing traces: what could tell of lines would be the student's to falsify
        lambda attempt, patience: (open_variant(attempt, patience), None),
        lines_above(attempt.source or "", text),
    )
