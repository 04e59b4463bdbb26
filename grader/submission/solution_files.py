"""A solution in a file beside its notebook: `decode.py` counts where the cell is not written.

The cell stays the authority. A file takes its place only while the cell holds its stub, is missing,
or does no more than `from decode import decode`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.course.course import Chapter
from grader.submission.program import is_stub
from grader.submission.rebuild import CELL_LIMIT, Unreadable, find_solution, read_regular


@dataclass(frozen=True)
class Joined:
    """A notebook with the text of files in its cells. `taken` are the exercises whose file counts.

    `notes` are sentences for the student, by exercise id.
    """

    notebook: dict[str, Any]
    taken: frozenset[str]
    notes: Mapping[str, tuple[str, ...]]


def with_files(chapter: Chapter, notebook: Mapping[str, Any], folder: Path) -> Joined:
    """Return a notebook, as `read_notebook` gives it, with the solution files of `folder` put in."""
    joined = copy.deepcopy(dict(notebook))
    taken, notes = set(), {}
    for exercise in chapter.exercises:
        path = folder / f"{exercise.id}.py"
        if not path.is_file():
            continue
        try:
            text = read_solution(path)
        except Unreadable as error:
            notes[exercise.id] = (f"The file beside the notebook was not read: {error}.",)
            continue
        place, _ = find_solution(exercise.id, joined["cells"])
        if place is not None and not holds_place(
            joined["cells"][place]["source"], exercise.id, exercise.stub
        ):
            notes[exercise.id] = (
                f"The cell in the notebook was graded. `{path.name}` lies beside it and is graded "
                "only while the cell holds its stub.",
            )
            continue
        if is_stub(text, exercise.stub):
            continue
        taken.add(exercise.id)
        notes[exercise.id] = (f"`{path.name}`, which lies beside the notebook, was graded.",)
        if place is None:
            joined["cells"].append(_cell(exercise.id, text))
        else:
            joined["cells"][place]["source"] = text
    return Joined(joined, frozenset(taken), notes)


def read_solution(path: Path) -> str:
    """Return a file's text as a solution cell would hold it. Raises `Unreadable`.

    What runs only when the file is run as a script is left out; lines keep their numbers.
    """
    text = read_regular(path).decode("utf-8", errors="replace").removeprefix("\ufeff")
    if len(text) > CELL_LIMIT:
        raise Unreadable(f"{path.name} has {len(text)} characters, over {CELL_LIMIT}")
    return _without_script(text)


def holds_place(source: str, exercise: str, stub: str) -> bool:
    """Say whether a solution cell is not written: its stub, or an import of the exercise's file."""
    return is_stub(source, stub) or _only_imports(source, exercise)


def _only_imports(source: str, exercise: str) -> bool:
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return bool(body) and all(
        isinstance(node, ast.ImportFrom) and node.module == exercise and not node.level
        for node in body
    )


def _without_script(text: str) -> str:
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    lines = text.split("\n")
    for node in body:
        if isinstance(node, ast.If) and not node.orelse and _asks_for_script(node.test):
            last = node.end_lineno or node.lineno
            lines[node.lineno - 1 : last] = [""] * (last - node.lineno + 1)
    return "\n".join(lines)


def _asks_for_script(test: ast.expr) -> bool:
    return ast.unparse(test) in ("__name__ == '__main__'", "'__main__' == __name__")


def _cell(exercise: str, text: str) -> dict[str, Any]:
    role = {"grade_id": exercise, "grade": False, "solution": True}
    return {"cell_type": "code", "metadata": {"nbgrader": role}, "source": text}
