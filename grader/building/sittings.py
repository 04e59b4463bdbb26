"""The cells that a chapter's sittings have in its notebook: where each begins, where one may stop.

They are written from what the notebook itself declares, so that a chapter that was cut down to some
of its exercises counts its own sittings and minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nbformat import NotebookNode

from grader.building.sections import Source
from grader.course.course import AuthorError, Exercise, exercises_in, sittings_in
from grader.course.exercise import Sitting, in_hours, minutes_of, short_path

TITLE = "title"
OVERVIEW = "overview"
PROGRESS = "progress"
"""Ids of the cells that every chapter with sittings has: what awaits, below the title, and at the end."""

STAR = "★"
"""What marks an exercise of the short path in a list."""

_OPENING, _END = "sitting-", "-end"

SITTING = {"question", "reached"}
"""What a sitting declares of itself."""

NewCell = Callable[[str, str], dict[str, Any]]
"""Makes a cell of an id and a text."""


def opening_id(sitting: str) -> str:
    """Return the id of the cell with which a sitting begins."""
    return f"{_OPENING}{sitting}"


def check_places(source: Source, cells: Sequence[NotebookNode]) -> None:
    """Raise `AuthorError` where a sitting's mark is not between two exercises, or has none below."""
    sitting, known, unfinished, filled = "", set[str](), "", True
    for cell in cells:
        marks = cell.metadata
        if "sitting" in marks:
            where = source.at("sitting", marks["sitting"], marks["sitting"] in known)
            if marks["sitting"] in known:
                raise AuthorError(
                    f"{where}: a second sitting {marks['sitting']}. Give one of them another name."
                )
            if unfinished:
                raise AuthorError(
                    f"{where}: the sitting {marks['sitting']} begins inside the section of "
                    f"{unfinished}. Move it below that one's grade cell."
                )
            _refuse_empty(source, sitting, filled)
            sitting, filled = marks["sitting"], False
            known.add(sitting)
        if "exercise" in marks:
            unfinished, filled = marks["exercise"], True
        if "grade" in marks:
            unfinished = ""
    _refuse_empty(source, sitting, filled)
    marked = [mark for cell in cells for mark in ("sitting", "exercise") if mark in cell.metadata]
    if known and marked[0] == "exercise":
        name = next(cell.metadata["exercise"] for cell in cells if "exercise" in cell.metadata)
        where = source.at("exercise", name)
        raise AuthorError(f"{where}: {name} is in no sitting. Begin the first one above its card.")


def _refuse_empty(source: Source, sitting: str, filled: bool) -> None:
    if not filled:
        where = source.at("sitting", sitting)
        raise AuthorError(f"{where}: the sitting {sitting} has no exercise. Remove it, or move it.")


def with_sittings(
    notebook: Mapping[str, Any],
    chapter: str,
    markdown: NewCell,
    code: NewCell,
    *,
    partly: bool = False,
) -> list[dict[str, Any]]:
    """Return a notebook's cells with those of its sittings as they are to be.

    The notebook has a cell with the id of each opening where it belongs. A sitting without exercises
    loses it; all the others' texts are written anew, and what says where one may stop is put above
    the next opening. A chapter that declares none stays as it is. `partly` says that the notebook has
    not all of the chapter's exercises: its last cell then names those that it has.
    """
    declared = notebook["metadata"].get("undertorch", {}).get("sittings", ())
    exercises = exercises_in(notebook, chapter)
    sittings = sittings_in(notebook, exercises)
    if not sittings:
        return list(notebook["cells"])
    openings = {opening_id(one.id): one for one in sittings}
    ours = {OVERVIEW, PROGRESS}
    for one in declared:
        ours |= {opening_id(one["id"]), opening_id(one["id"]) + _END}
    cells: list[dict[str, Any]] = []
    open_now: Sitting | None = None
    for cell in notebook["cells"]:
        name = str(cell["id"])
        if name in openings:
            if open_now is not None:
                cells.append(_closing_cell(open_now, openings[name], markdown))
            open_now = openings[name]
            cells.append(markdown(name, opening(open_now, len(sittings))))
        elif name not in ours:
            cells.append(cell)
        if name == TITLE:
            cells.append(markdown(OVERVIEW, overview(sittings, exercises)))
    assert open_now is not None
    cells.append(_closing_cell(open_now, None, markdown))
    # an import of its own: whoever opens the chapter can run this cell alone
    names = [chapter, *(exercise.id for exercise in exercises if partly)]
    call = ", ".join(f'"{name}"' for name in names)
    text = f"from grader import progress\n\nprogress({call})"
    return [*cells, code(PROGRESS, text)]


def _closing_cell(ended: Sitting, following: Sitting | None, markdown: NewCell) -> dict[str, Any]:
    return markdown(opening_id(ended.id) + _END, closing(ended, following))


def overview(sittings: Sequence[Sitting], exercises: Sequence[Exercise]) -> str:
    """Say what awaits in a chapter: sittings with their questions, and what they take."""
    short = short_path(exercises)
    total = (
        f"**{counted(exercises)}, about {in_hours(minutes_of(exercises))}, "
        f"in {len(sittings)} sitting{'s' * (len(sittings) != 1)}.** "
        "Each sitting answers a question and ends where one can stop."
    )
    partly = 0 < len(short) < len(exercises)
    if partly:
        total += (
            f" What everyone should have built is the **short path**, marked {STAR}: "
            f"{counted(short)}, about {in_hours(minutes_of(short))}."
        )
    rows = ["| | question | minutes | exercises |", "|--:|---|--:|---|"]
    for one in sittings:
        names = ", ".join(f"`{each.id}`" + _star(each, partly) for each in one.exercises)
        rows.append(f"| {one.number} | {one.question} | {one.minutes} | {names} |")
    return "\n".join([total, "", *rows])


def counted(exercises: Sequence[Exercise]) -> str:
    """Return how many exercises these are, in words: "1 exercise", "17 exercises"."""
    return f"{len(exercises)} exercise{'s' * (len(exercises) != 1)}"


def opening(sitting: Sitting, of: int) -> str:
    """Return the lead-in of a sitting. Its heading is of the title's level: exercises are below."""
    names = ", ".join(f"`{each.id}`" for each in sitting.exercises)
    facts = [f"**{sitting.minutes} minutes**", f"sitting {sitting.number} of {of}", names]
    return f"# {sitting.number}. {sitting.question}\n\n{' · '.join(facts)}"


def closing(ended: Sitting, following: Sitting | None) -> str:
    """Say at a sitting's end what was reached, and what comes next."""
    text = f"**The answer.** {ended.reached}\n\n"
    if following is None:
        return text + "This is the end of the chapter."
    return (
        f"{text}A good place to stop. Next, in {following.minutes} minutes: *{following.question}*"
    )


def _star(exercise: Exercise, mark: bool) -> str:
    return f" {STAR}" if mark and exercise.short else ""
