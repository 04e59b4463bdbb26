"""Where a reference notebook's outputs are from: a run of all, a run of one section, the last build."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from grader.building.kernel import run_notebook
from grader.course.cells import grade_id_of, is_grade_cell, role_of
from grader.course.course import AuthorError

CELL_SECONDS = 120
"""Longest run of one cell of a reference notebook."""


def executed(notebook: NotebookNode, folder: Path, stage: Path, source: Path) -> NotebookNode:
    """Return the notebook with the outputs of a run in `folder`.

    Raises `AuthorError` if a cell raises, or shows what would differ elsewhere.
    """
    run = ran(notebook, folder, source)
    for cell in run.cells:
        check_outputs(cell, stage, source)
    return run


def ran(notebook: NotebookNode, folder: Path, source: Path) -> NotebookNode:
    """Return the notebook with the outputs of a run, whatever they are: for what no reader sees.

    Raises `AuthorError` if a cell raises.
    """
    run: NotebookNode = nbformat.from_dict(notebook)
    try:
        run_notebook(
            run,
            folder,
            timeout=CELL_SECONDS,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,  # a kernel sends print's output in pieces as it pleases
        )
    except CellExecutionError as error:
        raise AuthorError(f"{source}: a cell raised.\n{error}") from None
    run.metadata = notebook.metadata
    return run


def recalled(notebook: NotebookNode, path: Path) -> NotebookNode:
    """Return the notebook with the outputs that its cells have in the one at `path`."""
    known = nbformat.read(path, as_version=4) if path.is_file() else nbformat.v4.new_notebook()
    return with_outputs_of(notebook, known)


def with_outputs_of(notebook: NotebookNode, known: NotebookNode) -> NotebookNode:
    """Return a notebook with the outputs that `known` has of the same cells, where it has them.

    Its cells are numbered as in a run of all.
    """
    outputs = {cell.id: cell for cell in known.cells if cell.cell_type == "code"}
    filled: NotebookNode = nbformat.from_dict(notebook)
    code = [cell for cell in filled.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, 1):
        if cell.id in outputs and cell.source == outputs[cell.id].source:
            cell.outputs = outputs[cell.id].outputs
            cell.execution_count = outputs[cell.id].execution_count
        if cell.execution_count is not None:
            cell.execution_count = number
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = number
    return filled


def part_for(notebook: NotebookNode, exercise: str) -> NotebookNode:
    """Return the cells up to the card that follows an exercise's, without other grade cells.

    They leave the names that a student has who comes to this exercise.
    """
    part: NotebookNode = nbformat.from_dict(notebook)
    part.cells, begun = [], False
    for cell in notebook.cells:
        if begun and cell.id.endswith("-card"):
            break
        begun = begun or cell.id == f"{exercise}-card"
        if not is_grade_cell(cell) or grade_id_of(cell) == f"{exercise}-grade":
            part.cells.append(nbformat.from_dict(cell))
    return part


def unrun(notebook: NotebookNode) -> int:
    """Return how many code cells were never run."""
    return sum(cell.cell_type == "code" and cell.execution_count is None for cell in notebook.cells)


def check_grades(notebook: NotebookNode, source: Path) -> None:
    """Refuse a reference that its own checks do not give every point."""
    for cell in notebook.cells:
        role = role_of(cell)
        if role is None or not role.is_grade:
            continue
        for output in cell.get("outputs", []):
            if output.output_type == "display_data":  # the verdict; its points come after it
                continue
            got = output.get("data", {}).get("text/plain", "")
            if got != str(role.points):
                name = role.grade_id.removesuffix("-grade")
                raise AuthorError(
                    f"{source}: the reference of {name} gets {got or 'no'} of {role.points:g} "
                    f"points. Mend it or its checks; why: undertorch validate {name}"
                )


def check_outputs(cell: NotebookNode, stage: Path, source: Path) -> None:
    """Refuse what would differ elsewhere: stderr, addresses, folders of this machine."""
    for output in cell.get("outputs", []):
        text = str(output)
        if output.get("name") == "stderr":
            raise AuthorError(f"{source}: cell {cell.id} writes to stderr: {output['text']}")
        if str(stage) in text or re.search(r"at 0x[0-9a-f]{8,}", text):
            raise AuthorError(
                f"{source}: cell {cell.id} shows an address or a folder of this machine"
            )
