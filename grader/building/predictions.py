"""What the chapters' predictions come out as, and what their pages draw: measured at build, and kept.

A notebook reveals nothing before there is a guess. So its predictions are measured in a run of their
own, without grade cells, in which `predict` takes no guess and shows what its second argument returns.
Still drawings (`grader/building/views.py`) are made in the same run, each where its paragraph stands.
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
from grader.building.views import drawings_in
from grader.course.cells import is_grade_cell
from grader.course.course import AuthorError

Measured = Mapping[str, str]
"""What came out, as text, by the id of the cell that asks for a prediction. Drawings as HTML, by the
id of the cell of prose that they stand in and their number: `reshape-4-drawn-0`."""

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


def _drawn(code):
    """Draw from the chapter's own names, and leave its random numbers as they are."""
    import math
    import torch
    from grader.building import stills

    kit = {name: found for name, found in vars(stills).items() if name.startswith("show_")}
    kit |= {name: getattr(grader, name) for name in ("show_storage", "show_graph")}
    kit |= {"math": math, "torch": torch}
    with torch.random.fork_rng(devices=[]):
        return eval(code, {**globals(), **kit})
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

    Its prose has its figures still. Raises `AuthorError` if a cell raises, shows what would differ
    elsewhere, or draws nothing.
    """
    asking = _asking(notebook)
    if not asking:
        return {}
    revealing: NotebookNode = nbformat.from_dict(notebook)
    revealing.cells = [nbformat.v4.new_code_cell(_REVEALING, id="revealing")]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            revealing.cells += [
                nbformat.v4.new_code_cell(f"_drawn({one.code!r})", id=_drawn_id(cell, number))
                for number, one in enumerate(drawings_in(cell.source))
            ]
        elif not is_grade_cell(cell):
            revealing.cells.append(nbformat.from_dict(cell))
    cells = {cell.id: cell for cell in ran(revealing, folder, source).cells}
    values: dict[str, str] = {}
    for name in asking:
        (result,) = [one for one in cells[name].outputs if one.output_type == "execute_result"]
        check_outputs(nbformat.from_dict({"id": name, "outputs": [result]}), stage, source)
        kind = "text/html" if cells[name].source.startswith("_drawn(") else "text/plain"
        if kind not in result.data:
            raise AuthorError(f"{source}: {cells[name].source} draws nothing")
        values[name] = result.data[kind]
    return values


def _asking(notebook: NotebookNode) -> dict[str, str]:
    """Return the text that each value is of, by its name: a cell's, or a drawing's expression."""
    found = {}
    for cell in notebook.cells:
        if asked_in(cell):
            found[cell.id] = cell.source
        elif cell.cell_type == "markdown":
            for number, one in enumerate(drawings_in(cell.source)):
                found[_drawn_id(cell, number)] = one.code
    return found


def _drawn_id(cell: NotebookNode, number: int) -> str:
    return f"{cell.id}-drawn-{number}"


def drawn_in(cell: NotebookNode, values: Measured) -> dict[str, str]:
    """Return the drawings of a cell of prose, by their expressions."""
    return {
        one.code: values[name]
        for number, one in enumerate(drawings_in(cell.source))
        if (name := _drawn_id(cell, number)) in values
    }


def known(root: Path, chapter: str, notebook: NotebookNode) -> dict[str, str]:
    """Return what an earlier build measured of the cells and drawings that are still the same."""
    path = root / FOLDER / f"{chapter}.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {
        name: kept[name]["is"]
        for name, text in _asking(notebook).items()
        if kept.get(name, {}).get("of") == _digest(text)
    }


def written(notebook: NotebookNode, values: Measured) -> str:
    """Return the file that keeps what was measured, and of which text."""
    kept = {
        name: {"of": _digest(text), "is": values[name]}
        for name, text in _asking(notebook).items()
        if name in values
    }
    return json.dumps(kept, indent=1, ensure_ascii=False) + "\n"


def unmeasured(notebook: NotebookNode, values: Measured) -> int:
    """Return how many predictions of a notebook were never measured."""
    return sum(name not in values for name in _asking(notebook))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
