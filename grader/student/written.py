"""Is an exercise written? Given cells that call a student's code ask, so that "Run All" goes on."""

from __future__ import annotations

import sys
from typing import Any

from grader.course.cells import code_cells
from grader.course.course import CourseError, find_course
from grader.student.live import live_attempt
from grader.submission.program import is_stub


def written(*exercises: str) -> bool:
    """Say whether this kernel holds an answer to each of these exercises, right or wrong.

    If one still holds its stub, or its cell was not run, this says so and the answer is False:

        if written("prefetch_plan"):
            print(prefetch_plan([6] * 24, 1, 6, 2))
    """
    names = vars(sys.modules["__main__"])
    missing = [name for name in exercises if not _written(name, names)]
    if missing:
        print(f"This cell uses {' and '.join(missing)}. Write that first, then run it again.")
    return not missing


def _written(exercise: str, names: dict[str, Any]) -> bool:
    try:
        chapter = find_course().chapter_of(exercise)
    except CourseError:  # given here, in a course that left the exercise out
        return exercise in names
    given = {cell.source.strip() for cell in code_cells(chapter.notebook)}
    source = live_attempt(exercise, names, given).source
    if source is None:
        return exercise in names
    return not is_stub(source, chapter.exercise(exercise).stub)
