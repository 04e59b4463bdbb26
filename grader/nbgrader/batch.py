"""Opens a batch of submissions, before nbgrader or a worker touches any: registers the chapter,
clears what must not be copied, and undoes what an interrupted run left half done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbgrader.converters import Autograde
from nbgrader.utils import rmtree

from grader.core.course import Chapter, Course, CourseError
from grader.core.store import Store
from grader.nbgrader.intake import take_in
from grader.nbgrader.register import as_registered, register
from grader.nbgrader.run import INTAKE


@dataclass(frozen=True)
class Batch:
    """A chapter that is about to be graded. `notes` are intake's, by submission folder.

    `released` is the released notebook as the gradebook knows it.
    """

    chapter: Chapter
    released: Mapping[str, Any]
    notes: Mapping[Path, list[str]]


def open_batch(autograde: Autograde) -> Batch | None:
    """Prepare all submissions that nbgrader found; None for an assignment that is no chapter."""
    directory = autograde.coursedir
    course = Course(Path(directory.root).resolve())
    try:
        chapter = course.chapter(directory.assignment_id)
    except CourseError:
        return None  # an assignment of another kind; nbgrader's own ways apply
    register(chapter, directory.db_url, directory.course_id)
    notes = {
        folder: _take_in(autograde, course, chapter, folder) for folder in _submissions(autograde)
    }
    for folder in notes:
        _undo_half_done(autograde, chapter, folder.parent.name)
    return Batch(chapter, as_registered(chapter, directory.db_url), notes)


def _submissions(autograde: Autograde) -> list[Path]:
    """Return the folders handed in, those without a notebook too."""
    directory = autograde.coursedir
    pattern = directory.format_path(
        directory.submitted_directory, directory.student_id, directory.assignment_id
    )
    root = Path(directory.root)
    return sorted(root.glob(str(Path(pattern).relative_to(root))))


def _take_in(autograde: Autograde, course: Course, chapter: Chapter, folder: Path) -> list[str]:
    student = folder.parent.name
    store = Store(course.root, student, chapter.id)
    expected = f"{chapter.name}.ipynb"
    said = take_in(folder, store.folder / "quarantine", expected)
    for line in said:
        autograde.log.warning("%s: %s", student, line)
    # nbgrader passes over a folder in which its pattern matched no notebook, and would grade
    # every other notebook that lies there
    autograde.assignments[str(folder)] = [str(folder / expected)]
    return said


def _undo_half_done(autograde: Autograde, chapter: Chapter, student: str) -> None:
    """Remove an autograded folder without verdicts: nbgrader would take it for graded for ever.

    A run that is killed between nbgrader's two steps leaves one, or half a file.
    """
    folder = Path(autograde._format_dest(chapter.id, student))
    notebook = folder / f"{chapter.name}.ipynb"
    if not folder.is_dir():
        return
    text = notebook.read_text(encoding="utf-8", errors="replace") if notebook.is_file() else ""
    if not text.rstrip().endswith("}") or f'"{INTAKE}"' in text:
        autograde.log.warning("%s was not graded to the end; it is graded again.", student)
        rmtree(str(folder))
