"""What a student reads after an exercise has passed: how far they are, what comes next, what to compare with.

In a learner's folder only. A built notebook, a test of one and a graded run show none of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from grader.course.course import Chapter, Course, Exercise
from grader.evidence.outcome import Outcome
from grader.student import journal
from grader.student.naming import anchor_of
from grader.verdict.verdict import Verdict


def what_next(chapter: Chapter, verdict: Verdict, folder: Path | None) -> tuple[str, ...]:
    """Return sentences in Markdown; none if it did not pass, or outside a learner's folder."""
    if folder is None or verdict.outcome is not Outcome.PASSED:
        return ()
    exercise = chapter.exercise(verdict.exercise)
    return (
        *_how_far(chapter, exercise, _passed(chapter, journal.recall(folder))),
        *_in_pytorch(chapter, exercise),
        f'To compare: `solution("{exercise.id}")` shows the reference, and with `others=True` '
        "other right answers too.",
    )


def _passed(chapter: Chapter, log: Sequence[journal.Entry]) -> set[str]:
    """Return the exercises of a chapter whose last verdict was that they passed."""
    last = {entry.exercise: entry.outcome for entry in log if entry.kind == "verdict"}
    return {one.id for one in chapter.exercises if last.get(one.id) == Outcome.PASSED.value}


def _how_far(chapter: Chapter, exercise: Exercise, passed: set[str]) -> Iterator[str]:
    everything = chapter.exercises
    place = everything.index(exercise)
    # what follows comes first, then what was left out before
    left = [one for one in (*everything[place + 1 :], *everything[:place]) if one.id not in passed]
    said = f"{_count(everything, passed)} exercises of this chapter passed"
    sitting = chapter.sitting_of(exercise)
    if sitting is not None:
        said = f"{_count(sitting.exercises, passed)} of this sitting, {said}"
        if all(one.id in passed for one in sitting.exercises):
            yield f"The sitting is done. {sitting.reached}"
    yield f"{said}."
    if not left:
        yield from _after_the_chapter(chapter)
    else:
        nearest = left[0]
        yield f"Next: [{nearest.title}](#{anchor_of(nearest.title)}), {nearest.minutes} minutes."


def _count(exercises: Sequence[Exercise], passed: set[str]) -> str:
    return f"{sum(one.id in passed for one in exercises)} of {len(exercises)}"


def _after_the_chapter(chapter: Chapter) -> Iterator[str]:
    """Lead on to the next chapter's notebook: in a student's folder each has a folder beside this one."""
    following = [
        one for one in Course(chapter.root, chapter.origin).chapters() if one.id > chapter.id
    ]
    if following:
        title = following[0].card.get("title", following[0].id)
        yield f"Next: [{title}](../{following[0].id}/{following[0].released.name})."


def _in_pytorch(chapter: Chapter, exercise: Exercise) -> Iterator[str]:
    for words, address, says in chapter.reading(exercise.id):
        yield f"In PyTorch: [{words}]({address})" + (f": “{says}”" if says else ".")
