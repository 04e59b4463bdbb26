"""The reference solution of an exercise: of the public variant, or of any other."""

from __future__ import annotations

import re

from grader.course.course import Chapter, CourseError, Exercise, reference_cell
from grader.course.parameters import public_values, render


def public_answer(chapter: Chapter, exercise: str) -> str:
    """Return the reference solution of an exercise's public variant."""
    cell = reference_cell(chapter, exercise)
    return str(cell["metadata"].get("undertorch", {}).get("public_answer") or cell["source"])


def reference_answer(chapter: Chapter, exercise: Exercise) -> str:
    """Return the reference solution of an exercise as the graders' own course has it.

    It is what known answers are edits of. An instructor may change the notebook in `source/`; the
    edits are still those of the course that the graders came with. And a live notebook may be of
    another variant than the course around it: then the solution is made from the chapter's source.
    """
    home = Chapter(chapter.origin, chapter.id) if chapter.origin else chapter
    cell = reference_cell(home, exercise.id)
    public = public_values(exercise.parameters)
    if exercise.values == (cell["metadata"].get("undertorch", {}).get("variant") or public):
        return str(cell["source"])
    if exercise.values == public:
        return public_answer(home, exercise.id)
    return render(_template(home, exercise.id), exercise.values)


def _template(chapter: Chapter, exercise: str) -> str:
    """Return a solution cell of the chapter's source, its parameters not filled in."""
    cell = rf'^# %% solution="{exercise}"\n(.*?)(?=^# %%|\Z)'
    for source in sorted((chapter.root / "solutions" / chapter.id).glob("*.pct.py")):
        found = re.search(cell, source.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        if found:
            return found.group(1).strip("\n")
    raise CourseError(
        f"solutions/{chapter.id} in {chapter.root} has no source (*.pct.py) with {exercise}, which "
        "its variant's solution is made from. Install Undertorch again."
    )
