"""A notebook's cells: their text, what they are for, and what they mean as code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


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


def source_of(cell: Mapping[str, Any]) -> str:
    """Return a cell's text, however the file keeps it."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def given_cells(notebook: Mapping[str, Any]) -> list[Cell]:
    """Return a released or reference notebook's code cells, grade cells left out."""
    cells = []
    for number, cell in enumerate(notebook["cells"]):
        role = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] != "code" or role.get("grade"):
            continue
        if role.get("solution"):
            cells.append(Cell(Kind.SOLUTION, role["grade_id"], source_of(cell)))
        else:
            cells.append(Cell(Kind.GIVEN, f"given cell {number}", source_of(cell)))
    return cells
