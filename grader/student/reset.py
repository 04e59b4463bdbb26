"""Puts an exercise back to its stub, and keeps what was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from grader.course.cells import grade_id_of
from grader.course.course import Chapter, CourseError
from grader.files import write_atomically
from grader.student.folder import Folder
from grader.student.notebooks import dump, load, refuse_other_variant
from grader.submission.program import is_stub
from grader.submission.rebuild import find_solution
from grader.submission.solution_files import holds_place


def reset(folder: Folder, chapter: Chapter, exercise: str) -> list[Path]:
    """Restore the stub in the notebook; move a file beside it away. Return where the old texts are.

    Empty if there was nothing but the stub. Raises `CourseError` if the cell is missing.
    """
    path, stub = folder.notebook(chapter), chapter.exercise(exercise).stub
    notebook = load(path)
    refuse_other_variant(chapter, path, notebook, exercise)
    place, _ = find_solution(exercise, notebook["cells"])
    if place is None:
        raise CourseError(f"{path} has no cell for {exercise}. `undertorch update` brings it back.")
    kept, file = [], path.with_name(f"{exercise}.py")
    cell = notebook["cells"][place]
    if not is_stub(cell["source"], stub):
        if not holds_place(cell["source"], exercise, stub):
            text = cell["source"].encode("utf-8", "replace")
            kept.append(folder.keep(chapter.id, exercise, ".py", text))
        cell["source"] = stub
        for changed in (cell, *_grade_cells(notebook, exercise)):
            changed["outputs"], changed["execution_count"] = [], None
        write_atomically(path, dump(notebook))
    if file.is_file():
        kept.append(folder.keep(chapter.id, exercise, ".py", file.read_bytes()))
        file.unlink()
    return kept


def _grade_cells(notebook: dict[str, Any], exercise: str) -> list[dict[str, Any]]:
    name = f"{exercise}-grade"
    return [cell for cell in notebook["cells"] if grade_id_of(cell) == name]
