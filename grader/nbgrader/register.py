"""Registers a chapter in the gradebook from its released notebook, as generate_assignment would."""

from __future__ import annotations

import nbformat
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.preprocessors import CheckCellMetadata, ComputeChecksums, SaveCells

from grader.core.course import Chapter


def register(chapter: Chapter, db_url: str, course_id: str) -> bool:
    """Make sure that the gradebook knows the chapter; return whether it had to be told.

    A fresh clone has released notebooks and no gradebook. What is registered already is left as
    it is, hidden tests included.
    """
    with Gradebook(db_url, course_id) as gradebook:
        try:
            gradebook.find_notebook(chapter.name, chapter.id)
            return False
        except MissingEntry:
            gradebook.update_or_create_assignment(chapter.id)
    notebook = nbformat.read(chapter.released, as_version=4)
    resources = {"nbgrader": {"notebook": chapter.name, "assignment": chapter.id, "db_url": db_url}}
    for preprocessor in (ComputeChecksums(), SaveCells(), CheckCellMetadata()):
        notebook, resources = preprocessor.preprocess(notebook, resources)
    return True
