"""Cuts a chapter's reference notebook down to chosen exercises, with the points that they have here.

An exercise's section goes as a whole. What the rest needs of it stays: a cell that defines a name
which a kept cell uses, and, where a chosen exercise's section calls an exercise that was not chosen,
the course's answer to it as a given cell. Parts of the text between the exercises stay, but for
those whose examples would give away an answer in this way. Sittings are counted anew, and say how
long they take with what was chosen; one without exercises goes.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.building.sittings import with_sittings
from grader.course.cells import grade_id_of, is_grade_cell, is_solution_cell, role_of, source_of
from grader.course.course import Chapter
from grader.course.solution_marks import without_marks
from grader.submission.names import needs, provides


@dataclass(frozen=True)
class Cut:
    """A source notebook for nbgrader. `given` are exercises whose answer came along, with who
    needs it; `missing` are those that a chosen one's card builds on and that are not there.
    """

    notebook: dict[str, Any]
    given: Mapping[str, str]
    missing: Mapping[str, tuple[str, ...]]


def cut(chapter: Chapter, points: Mapping[str, float]) -> Cut:
    """Return the chapter's reference notebook with the exercises that `points` names, no outputs.

    Raises `CourseError` for an exercise that the chapter does not have.
    """
    chosen = [chapter.exercise(name).id for name in points]
    notebook = json.loads(chapter.reference.read_text(encoding="utf-8"))
    cells = notebook["cells"]
    left_out = {exercise.id for exercise in chapter.exercises} - set(chosen)
    left_out |= _telling(cells, left_out, set(chosen))
    kept = {index for index, cell in enumerate(cells) if _section(cell) not in left_out}
    wanted_by = _needed(cells, kept)
    notebook["cells"] = [
        _given(cell) if index in wanted_by else _weighted(cell, points)
        for index, cell in enumerate(cells)
        if index in kept or index in wanted_by
    ]
    partly = len(chosen) < len(chapter.exercises)
    notebook["cells"] = with_sittings(notebook, chapter.id, _markdown, _code, partly=partly)
    given = {
        role.grade_id: wanted_by[index]
        for index in sorted(wanted_by)
        if (role := role_of(cells[index])) and role.is_solution
    }
    there = {*chosen, *given}
    cards = {name: chapter.exercise(name).prerequisites for name in chosen}
    missing = {name: tuple(p for p in cards[name] if p not in there) for name in chosen}
    return Cut(notebook, given, {name: lacks for name, lacks in missing.items() if lacks})


def _markdown(id: str, text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": id, "metadata": {}, "source": text}


def _code(id: str, text: str) -> dict[str, Any]:
    kept: dict[str, Any] = {"execution_count": None, "outputs": []}
    return {"cell_type": "code", "id": id, "metadata": {}, "source": text, **kept}


def _section(cell: Mapping[str, Any]) -> str:
    """Return the section that a cell's id names: an exercise, or a part of the text."""
    name = str(cell.get("id", ""))
    if role_of(cell):
        return name.removesuffix("-grade")
    return name.rpartition("-")[0] or name


def _telling(cells: Sequence[Mapping[str, Any]], left_out: set[str], chosen: set[str]) -> set[str]:
    """Return the parts of the text that need the answer to an exercise that is left out."""
    telling: set[str] = set()
    for part in dict.fromkeys(_section(cell) for cell in cells):
        if part not in left_out | chosen:
            own = {index for index, cell in enumerate(cells) if _section(cell) == part}
            needed = _needed(cells, own)
            if any(
                is_solution_cell(cells[index]) and _section(cells[index]) in left_out
                for index in needed
            ):
                telling.add(part)
    return telling


def _needed(cells: Sequence[Mapping[str, Any]], kept: set[int]) -> dict[int, str]:
    """Return the cells outside `kept` that those inside need, each with the section that does.

    A name is had from the last cell before that binds it in the whole notebook: so it means there
    what it means in the whole.
    """
    binders: dict[str, list[int]] = {}
    for index, cell in enumerate(cells):
        if cell["cell_type"] == "code" and not is_grade_cell(cell):
            for name in provides(source_of(cell)):
                binders.setdefault(name, []).append(index)
    found: dict[int, str] = {}
    pending = sorted(kept)
    while pending:
        index = pending.pop(0)
        if cells[index]["cell_type"] != "code" or is_grade_cell(cells[index]):
            continue
        for name in sorted(needs(source_of(cells[index]))):
            before = [other for other in binders.get(name, ()) if other < index]
            if before and before[-1] not in kept and before[-1] not in found:
                found[before[-1]] = found.get(index) or _section(cells[index])
                pending.append(before[-1])
    return found


def _given(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cell of a section that is left out, as a plain one: its answer, or its code."""
    plain = copy.deepcopy(dict(cell))
    text = without_marks(source_of(cell))
    if not text.startswith("%%"):
        what = grade_id_of(cell)
        why = f"the course's answer to {what}" if what else f"from the part on {_section(cell)}"
        text = f"# Given: {why}, which the cells below use.\n{text}"
    plain.update(source=text, metadata={}, outputs=[], execution_count=None)
    return plain


def _weighted(cell: Mapping[str, Any], points: Mapping[str, float]) -> dict[str, Any]:
    """Return a cell without outputs, with the points that its exercise has here."""
    mine = copy.deepcopy(dict(cell))
    mine["source"] = source_of(cell)
    if mine["cell_type"] == "code":
        mine.update(outputs=[], execution_count=None)
    exercise = _section(cell)
    if exercise not in points:
        return mine
    worth = points[exercise]
    if mine["id"] == f"{exercise}-card":
        mine["source"] = re.sub(
            r"· [\d.]+ points ·", f"· {worth:g} points ·", mine["source"], count=1
        )
    if is_grade_cell(mine):
        mine["metadata"]["nbgrader"]["points"] = worth
    elif is_solution_cell(mine):
        mine["metadata"]["undertorch"]["points"] = worth
    return mine
