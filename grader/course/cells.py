"""A notebook's cells: their text, their role for nbgrader, and what they mean as code.

Metadata may be a student's, and so of any shape: what is asked here is safe to ask of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

_OWN_ID = re.compile(r"own-(\d+)")
"""The ids that `own_cell` gives. Rebuilt notebooks go through files: the id says whose a cell is."""


class Kind(Enum):
    """Where the text of a cell comes from and what it is for."""

    GIVEN = "given"  # from the released notebook
    SOLUTION = "solution"  # the student's text in a solution cell
    OWN = "own"  # a cell that the student added or changed


@dataclass(frozen=True)
class Cell:
    """A code cell. `label` is what tracebacks show; a solution's is its exercise id."""

    kind: Kind
    label: str
    source: str


@dataclass(frozen=True)
class CellRole:
    """What nbgrader's metadata says that a cell is for. `grade_id` is its name in the gradebook."""

    grade_id: str
    is_solution: bool
    is_grade: bool
    points: float = 0.0


def role_of(cell: Mapping[str, Any]) -> CellRole | None:
    """Return what a cell is for nbgrader; None if its metadata does not name it."""
    role = cell["metadata"].get("nbgrader")
    if not isinstance(role, Mapping) or not isinstance(role.get("grade_id"), str):
        return None
    try:
        points = float(role.get("points") or 0.0)
    except (TypeError, ValueError, OverflowError):
        points = 0.0
    return CellRole(role["grade_id"], bool(role.get("solution")), bool(role.get("grade")), points)


def grade_id_of(cell: Mapping[str, Any]) -> str | None:
    """Return the name by which nbgrader knows a cell, if it has one."""
    role = role_of(cell)
    return role.grade_id if role else None


def is_solution_cell(cell: Mapping[str, Any]) -> bool:
    """Say whether a student's answer goes into this cell."""
    role = role_of(cell)
    return role is not None and role.is_solution


def is_grade_cell(cell: Mapping[str, Any]) -> bool:
    """Say whether this cell has points."""
    role = role_of(cell)
    return role is not None and role.is_grade


def source_of(cell: Mapping[str, Any]) -> str:
    """Return a cell's text, however the file keeps it."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def own_cell(place: int, source: str) -> dict[str, Any]:
    """Return a rebuilt notebook's cell with code that was the student's cell number `place`."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": f"own-{place}",
        "metadata": {},
        "outputs": [],
        "source": source,
    }


def as_code(number: int, cell: Mapping[str, Any]) -> Cell | None:
    """Return what cell `number` of a released, reference or rebuilt notebook means as code.

    None for grade cells and for what is no code.
    """
    role = role_of(cell)
    if cell["cell_type"] != "code" or (role and role.is_grade):
        return None
    source = source_of(cell)
    if role and role.is_solution:
        return Cell(Kind.SOLUTION, role.grade_id, source)
    own = _OWN_ID.fullmatch(str(cell.get("id", "")))
    if own:
        return Cell(Kind.OWN, f"your cell {int(own.group(1)) + 1}", source)
    return Cell(Kind.GIVEN, f"given cell {number}", source)


def code_cells(notebook: Mapping[str, Any]) -> list[Cell]:
    """Return a released, reference or rebuilt notebook's code cells, grade cells left out."""
    read = (as_code(number, cell) for number, cell in enumerate(notebook["cells"]))
    return [cell for cell in read if cell is not None]
