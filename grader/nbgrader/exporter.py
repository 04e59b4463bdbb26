"""Where nbgrader meets a batch of submissions: before any is converted, and at each one's file."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException

from grader.box.tiers import BoxUnavailable
from grader.course.course import CourseError
from grader.nbgrader.batch import Batch, open_batch, settle_resubmissions
from grader.nbgrader.grade import GradeInBox
from grader.nbgrader.gradebook import must_accept, said_in_words, share_engines
from grader.nbgrader.run import Run


class SubmissionExporter(NotebookExporter):
    """nbgrader's notebook exporter for autograde. It is made once per batch, after nbgrader has
    found the submissions and before it touches any: that is the moment for intake, for the
    gradebook's registration and for the box.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]  # nbconvert's is untyped
        self._autograde = self.parent if isinstance(self.parent, Autograde) else None
        batch = self._open(self._autograde) if self._autograde else None
        self._notes = batch.notes if batch else {}
        self.run = self._start(batch) if batch else None

    def _open(self, autograde: Autograde) -> Batch | None:
        try:
            must_accept(autograde.coursedir.db_url)
            with said_in_words():
                batch = open_batch(autograde)
                if batch:
                    share_engines()
                    settle_resubmissions(autograde, batch)
                return batch
        except CourseError as error:
            self.log.error("No submission was graded: %s", error)
            raise NbGraderException(str(error)) from None

    def _start(self, batch: Batch) -> Run:
        run = Run(batch.chapter, GradeInBox(parent=self._autograde).terms(), batch.released)
        try:
            run.start()
        except BoxUnavailable as error:
            self.log.error("No submission was graded: %s", error)
            raise NbGraderException(str(error)) from None
        weakref.finalize(self, run.close)
        return run

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **kwargs: Any
    ) -> tuple[Any, dict[str, Any]]:
        """Read a submission with care; a file that nbgrader wrote itself, as it does.

        What comes first is the notebook's text, though nbconvert's annotation says a notebook.
        """
        path = Path(filename)
        if self._autograde is None or self.run is None:
            return super().from_filename(filename, resources, **kwargs)
        resources = dict(resources or {})
        resources["metadata"] = {"name": path.stem, "path": str(path.parent)}
        resources["undertorch"] = self.run
        if self._autograde._sanitizing:
            student = resources["nbgrader"]["student"]
            notes = self._notes.get(path.parent, [])
            node = self.run.reader.take(path, student, notes)
        else:
            node = nbformat.read(path, as_version=4)
        converted: tuple[Any, dict[str, Any]] = self.from_notebook_node(  # type: ignore[no-untyped-call]  # nbconvert's
            node, resources, **kwargs
        )
        return converted
