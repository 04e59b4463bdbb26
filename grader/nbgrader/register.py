"""Registers a chapter in the gradebook from its released notebook, as generate_assignment would."""

from __future__ import annotations

import json
from typing import Any

import nbformat
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters.base import NbGraderException
from nbgrader.preprocessors import CheckCellMetadata, ComputeChecksums, OverwriteCells, SaveCells
from nbgrader.utils import compute_checksum
from sqlalchemy import make_url

from grader.course.cells import grade_id_of
from grader.course.course import Chapter
from grader.nbgrader.gradebook import spare_alembic


def register(chapter: Chapter, db_url: str, course_id: str) -> bool:
    """Make sure that the gradebook knows the chapter; return whether it had to be told.

    A fresh clone has released notebooks and no gradebook. What is registered already is left as
    it is, hidden tests included; only points follow the exercises' cards. Raises
    `NbGraderException` if nbgrader itself would fail to.
    """
    if not course_id and make_url(db_url).get_backend_name() != "sqlite":
        # nbgrader gives assignments a course "" that it never makes; only SQLite lets it
        raise NbGraderException(
            "A gradebook that is not SQLite needs a course id. Set one in nbgrader_config.py, "
            'for instance get_config().CourseDirectory.course_id = "undertorch"'
        )
    spare_alembic()
    with Gradebook(db_url, course_id) as gradebook:
        try:
            gradebook.find_notebook(chapter.name, chapter.id)
            return _follow_points(chapter, gradebook)
        except MissingEntry:
            gradebook.update_or_create_assignment(chapter.id)
    notebook = nbformat.read(chapter.released, as_version=4)
    for preprocessor in (ComputeChecksums(), SaveCells(), CheckCellMetadata()):
        notebook, _ = preprocessor.preprocess(notebook, _resources(chapter, db_url))
    return True


def as_registered(chapter: Chapter, db_url: str) -> dict[str, Any]:
    """Return the released notebook with the gradebook's test cells, points and checksums."""
    notebook = nbformat.read(chapter.released, as_version=4)
    for preprocessor in (OverwriteCells(), CheckCellMetadata()):
        notebook, _ = preprocessor.preprocess(notebook, _resources(chapter, db_url))
    plain: dict[str, Any] = json.loads(json.dumps(notebook))
    return plain


def _resources(chapter: Chapter, db_url: str) -> dict[str, Any]:
    return {"nbgrader": {"notebook": chapter.name, "assignment": chapter.id, "db_url": db_url}}


def _follow_points(chapter: Chapter, gradebook: Gradebook) -> bool:
    """Give grade cells the points that their exercises have now; return whether any changed."""
    cells = {
        grade_id_of(cell): cell for cell in nbformat.read(chapter.released, as_version=4).cells
    }
    changed = False
    for exercise in chapter.exercises:
        if exercise.grade_id not in cells:
            continue
        place = exercise.grade_id, chapter.name, chapter.id
        known = gradebook.find_grade_cell(*place)
        if known.max_score != exercise.points:
            known.max_score = exercise.points
            # nbgrader counts a grade cell's points in its checksum
            gradebook.find_source_cell(*place).checksum = compute_checksum(cells[exercise.grade_id])
            changed = True
    gradebook.db.commit()
    return changed
