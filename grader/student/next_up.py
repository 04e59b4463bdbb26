"""What a student reads after an exercise has passed: how far they are, what comes next, what to compare with.

In a learner's folder only. A built notebook, a test of one and a graded run show none of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from grader.course.course import Chapter, Exercise
from grader.evidence.outcome import Outcome
from grader.feedback.render import Line
from grader.student import journal
from grader.student.naming import anchor_of
from grader.verdict.verdict import Verdict


def what_next(chapter: Chapter, verdict: Verdict, folder: Path | None) -> tuple[Line, ...]:
    """Return the lines below a verdict; none if it did not pass, or outside a learner's folder."""
    if folder is None or verdict.outcome is not Outcome.PASSED:
        return ()
    exercise = chapter.exercise(verdict.exercise)
    return (
        *_how_far(chapter, exercise, _passed(chapter, journal.recall(folder))),
        *(Line(f"In PyTorch: {words}", link) for words, link in chapter.reading(exercise.id)),
        Line(
            f'To compare with the reference: `solution("{exercise.id}")`; with other right answers '
            f'too: `solution("{exercise.id}", others=True)`.'
        ),
    )


def _passed(chapter: Chapter, log: Sequence[journal.Entry]) -> set[str]:
    """Return the exercises of a chapter whose last verdict was that they passed."""
    last = {entry.exercise: entry.outcome for entry in log if entry.kind == "verdict"}
    return {one.id for one in chapter.exercises if last.get(one.id) == Outcome.PASSED.value}


def _how_far(chapter: Chapter, exercise: Exercise, passed: set[str]) -> Iterator[Line]:
    everything = chapter.exercises
    place = everything.index(exercise)
    # what follows comes first, then what was left out before
    left = [one for one in (*everything[place + 1 :], *everything[:place]) if one.id not in passed]
    done = len(everything) - len(left)
    yield Line(f"{done} of {len(everything)} exercises of this chapter passed.")
    if left:
        nearest = left[0]
        yield Line(
            f"Next: {nearest.title} (`{nearest.id}`), {nearest.minutes} minutes.",
            f"#{anchor_of(nearest.title)}",
        )
