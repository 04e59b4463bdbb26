"""Where nbgrader meets a batch of submissions: before any is converted, and at each one's file."""

from __future__ import annotations

import glob
import weakref
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from nbgrader.utils import rmtree

from grader.core.course import Chapter, Course, CourseError
from grader.core.store import Store
from grader.core.submission import Unreadable, read_notebook, rebuild
from grader.engine.box import Box
from grader.engine.tiers import BoxUnavailable
from grader.nbgrader.grade import GradeInBox, Run
from grader.nbgrader.intake import printable, take_in
from grader.nbgrader.register import register


class SubmissionExporter(NotebookExporter):
    """nbgrader's notebook exporter for autograde. It is made once per batch, after nbgrader has
    found the submissions and before it touches any: that is the moment for intake, for the
    gradebook's registration and for the box.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._notes: dict[Path, list[str]] = {}
        self.run: Run | None = None
        if isinstance(self.parent, Autograde):
            self._open_batch(self.parent)

    def _open_batch(self, autograde: Autograde) -> None:
        directory = autograde.coursedir
        course = Course(Path(directory.root).resolve())
        try:
            chapter = course.chapter(directory.assignment_id)
        except CourseError:
            return  # an assignment of another kind; nbgrader's own ways apply
        register(chapter, directory.db_url, directory.course_id)
        for folder in self._submissions(autograde):
            self._take_in(autograde, course, chapter, folder)
        settings = GradeInBox(parent=autograde)
        try:
            box = Box(
                chapter.probes,
                chapter.preload,
                settings.budget,
                trust=settings.trust_submissions,
            )
        except BoxUnavailable as error:
            self.log.error("No submission was graded: %s", error)
            raise NbGraderException(str(error)) from None
        weakref.finalize(self, box.close)
        self.run = Run(chapter, box, settings.seed)

    def _submissions(self, autograde: Autograde) -> list[Path]:
        """Return the folders handed in, those without a notebook too."""
        directory = autograde.coursedir
        pattern = directory.format_path(
            directory.submitted_directory, directory.student_id, directory.assignment_id
        )
        return [Path(folder) for folder in sorted(glob.glob(pattern))]  # as nbgrader finds them

    def _take_in(
        self, autograde: Autograde, course: Course, chapter: Chapter, folder: Path
    ) -> None:
        student = folder.parent.name
        if not student.isprintable():
            # a line break would end nbgrader's whole batch, bytes that are no text its database's
            self.log.error("%a can be no student's id: rename the folder. It is not graded.", student)
            autograde.assignments.pop(str(folder), None)
            return
        store = Store(course.root, student, chapter.id)
        expected = f"{chapter.name}.ipynb"
        try:
            said = take_in(folder, store.folder / "quarantine", expected)
        except OSError as error:
            self.log.error("%s: %s. It is not graded.", student, error)
            autograde.assignments.pop(str(folder), None)
            return
        for line in said:
            self.log.warning("%s: %s", student, line)
        self._notes[folder] = said
        self._forget_untimed(autograde, folder, student)
        # nbgrader passes over a folder in which its pattern matched no notebook, and would grade
        # every other notebook that lies there
        autograde.assignments[str(folder)] = [str(folder / expected)]

    def _forget_untimed(self, autograde: Autograde, folder: Path, student: str) -> None:
        """Drop a grading of something without a time if what lies here now has one.

        nbgrader compares times to see what was handed in again, and would pass over this.
        """
        directory = autograde.coursedir
        graded = Path(
            directory.format_path(directory.autograded_directory, student, directory.assignment_id)
        )
        stamp = "timestamp.txt"
        if graded.is_dir() and (folder / stamp).is_file() and not (graded / stamp).exists():
            self.log.warning("%s: graded before without a time, and handed in again.", student)
            rmtree(str(graded))

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **kwargs: Any
    ) -> tuple[str, dict[str, Any]]:
        """Read a submission with care; a file that nbgrader wrote itself, as it does."""
        path = Path(filename)
        if self.run is None:
            return super().from_filename(filename, resources, **kwargs)
        resources = dict(resources or {})
        resources["metadata"] = {"name": path.stem, "path": str(path.parent)}
        resources["undertorch"] = self.run
        if self.parent._sanitizing:
            node = self._rebuilt(path, self.run.chapter, resources["nbgrader"]["student"])
        else:
            node = nbformat.read(path, as_version=4)
        return self.from_notebook_node(node, resources, **kwargs)

    def _rebuilt(self, path: Path, chapter: Chapter, student: str) -> nbformat.NotebookNode:
        found = _the_notebook(path)
        said = list(self._notes.get(path.parent, []))
        notes: dict[str, list[str]] = {"": said}
        intake: dict[str, Any] = {"notes": notes}
        try:
            rebuilt = rebuild(chapter, read_notebook(found))
            notebook = rebuilt.notebook
            for key, more in rebuilt.notes.items():
                notes.setdefault(key, []).extend(more)
        except Unreadable as error:
            intake["unreadable"] = str(error)
        except Exception as error:  # a submission that fails here would keep its old score
            self.log.exception("%s: the notebook could not be rebuilt", student)
            intake["unreadable"] = f"rebuilding it failed ({type(error).__name__})"
        if "unreadable" in intake:
            self.log.warning("%s: %s. It needs review.", student, intake["unreadable"])
            notebook = dict(chapter.notebook)
        elif found != path:
            for exercise in chapter.exercises:
                name = f"`{printable(found.name)}`, the only notebook handed in, was graded."
                notes.setdefault(exercise.id, []).append(name)
        node = nbformat.from_dict(notebook)
        node.metadata["undertorch_intake"] = intake
        return node


def _the_notebook(path: Path) -> Path:
    """Return the notebook to grade: the one of that name, or the only one under another."""
    if path.exists() or path.is_symlink():
        return path
    others = [other for other in path.parent.glob("*.ipynb") if not other.is_symlink()]
    return others[0] if len(others) == 1 else path
