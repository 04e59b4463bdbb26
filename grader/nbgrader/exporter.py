"""Where nbgrader meets a batch of submissions: before any is converted, and at each one's file."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException

from grader.core.course import Chapter, Course, CourseError
from grader.core.store import Store
from grader.core.submission import Unreadable, read_notebook, rebuild
from grader.engine.box import Box
from grader.engine.tiers import BoxUnavailable
from grader.nbgrader.grade import GradeInBox, Run
from grader.nbgrader.intake import take_in
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
        root = Path(directory.root)
        return sorted(root.glob(str(Path(pattern).relative_to(root))))

    def _take_in(
        self, autograde: Autograde, course: Course, chapter: Chapter, folder: Path
    ) -> None:
        student = folder.parent.name
        store = Store(course.root, student, chapter.id)
        expected = f"{chapter.name}.ipynb"
        said = take_in(folder, store.folder / "quarantine", expected)
        for line in said:
            self.log.warning("%s: %s", student, line)
        self._notes[folder] = said
        # nbgrader passes over a folder in which its pattern matched no notebook, and would grade
        # every other notebook that lies there
        autograde.assignments[str(folder)] = [str(folder / expected)]

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
        notes = self._notes.get(path.parent, [])
        try:
            submitted = read_notebook(_the_notebook(path))
            rebuilt = rebuild(chapter, submitted)
            notebook, intake = rebuilt.notebook, {"notes": {"": notes, **rebuilt.notes}}
        except Unreadable as error:
            self.log.warning("%s: %s. It needs review.", student, error)
            notebook = dict(chapter.notebook)
            intake = {"notes": {"": notes}, "unreadable": str(error)}
        node = nbformat.from_dict(notebook)
        node.metadata["undertorch_intake"] = intake
        return node


def _the_notebook(path: Path) -> Path:
    """Return the notebook to grade: the one of that name, or the only one under another."""
    if path.exists() or path.is_symlink():
        return path
    others = [other for other in path.parent.glob("*.ipynb") if not other.is_symlink()]
    return others[0] if len(others) == 1 else path
