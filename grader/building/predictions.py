"""What the chapters' predictions come out as: measured when a chapter is built, kept for its pages.

A notebook reveals nothing before there is a guess. So its predictions are measured in a run of their
own, without grade cells, in which `predict` takes no guess and shows what its second argument returns.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from grader.building.outputs import check_outputs, ran
from grader.course.cells import is_grade_cell

Measured = Mapping[str, str]
"""What came out, as text, by the id of the cell that asks for a prediction."""

FOLDER = Path("site/predictions")

_REVEALING = '''
import grader


class Revealed:
    """What a prediction is compared with, as one would write it."""

    def __init__(self, value):
        self.said = str(value)

    def __repr__(self):
        return self.said


grader.predict = lambda guess=..., reveal=None: Revealed(reveal())
'''


@dataclass(frozen=True)
class Asked:
    """A cell that asks for a prediction: what stands above the call, and what it will run."""

    before: str
    runs: str


def asked_in(cell: NotebookNode) -> Asked | None:
    """Return what a cell asks to predict; None if it does not end with `predict(..., what)`."""
    if cell.cell_type != "code" or "predict(" not in cell.source:
        return None
    try:
        last = ast.parse(cell.source).body[-1]
    except (SyntaxError, IndexError):
        return None
    match last:
        case ast.Expr(ast.Call(ast.Name("predict"), [_, ast.Lambda(body=body)])):
            runs = _text(cell.source, body)
        case ast.Expr(ast.Call(ast.Name("predict"), [_, ast.Name(id=name)])):
            runs = f"{name}()"
        case ast.Expr(ast.Call(ast.Name("predict"), [_, what])):
            runs = _text(cell.source, what)
        case _:
            return None
    return Asked("\n".join(cell.source.splitlines()[: last.lineno - 1]).rstrip(), runs)


def _text(source: str, node: ast.expr) -> str:
    """Return an expression's own text, on as few lines as it was written on."""
    found = ast.get_source_segment(source, node, padded=True) or ast.unparse(node)
    return found if "\n" not in found else ast.unparse(node)


def measured(notebook: NotebookNode, folder: Path, stage: Path, source: Path) -> dict[str, str]:
    """Run a notebook without its grade cells; return what its predictions come out as.

    Raises `AuthorError` if a cell raises, or a prediction shows what would differ elsewhere.
    """
    asking = [cell.id for cell in notebook.cells if asked_in(cell)]
    if not asking:
        return {}
    revealing: NotebookNode = nbformat.from_dict(notebook)
    revealing.cells = [
        nbformat.v4.new_code_cell(_REVEALING, id="revealing"),
        *(nbformat.from_dict(cell) for cell in notebook.cells if not is_grade_cell(cell)),
    ]
    cells = {cell.id: cell for cell in ran(revealing, folder, source).cells}
    values: dict[str, str] = {}
    for name in asking:
        (result,) = [one for one in cells[name].outputs if one.output_type == "execute_result"]
        check_outputs(nbformat.from_dict({"id": name, "outputs": [result]}), stage, source)
        values[name] = result.data["text/plain"]
    return values


def known(root: Path, chapter: str, notebook: NotebookNode) -> dict[str, str]:
    """Return what an earlier build measured of the cells that are still the same."""
    path = root / FOLDER / f"{chapter}.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {
        cell.id: kept[cell.id]["is"]
        for cell in notebook.cells
        if asked_in(cell) and kept.get(cell.id, {}).get("of") == _digest(cell)
    }


def written(notebook: NotebookNode, values: Measured) -> str:
    """Return the file that keeps what was measured, and of which text of a cell."""
    kept = {
        cell.id: {"of": _digest(cell), "is": values[cell.id]}
        for cell in notebook.cells
        if cell.id in values
    }
    return json.dumps(kept, indent=1, ensure_ascii=False) + "\n"


def unmeasured(notebook: NotebookNode, values: Measured) -> int:
    """Return how many predictions were never measured."""
    return sum(asked_in(cell) is not None and cell.id not in values for cell in notebook.cells)


def _digest(cell: NotebookNode) -> str:
    return hashlib.sha256(cell.source.encode()).hexdigest()[:16]
