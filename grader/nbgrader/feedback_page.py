"""Feedback pages: made by nbgrader, told more of a grade than its number, released by its exchange."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.converters import GenerateFeedback
from nbgrader.exchange import ExchangeError
from nbgrader.exchange.default import ExchangeReleaseFeedback
from nbgrader.preprocessors import GetGrades

from grader.nbgrader.commands import autograde_app, nbgrader_says

SECRET = "submission_secret.txt"
"""What the exchange puts beside a submission; feedback is published under a digest of it."""


def generate(root: Path, chapter: str) -> None:
    """Write the feedback pages of all that is graded of a chapter. Raises `CourseError`."""
    app = autograde_app(root, chapter)
    step = GenerateFeedback(coursedir=app.coursedir, parent=app)
    step.force = True
    with nbgrader_says():
        step.start()


def came_by_exchange(folder: Path) -> bool:
    """Did the submission come through nbgrader's exchange? `folder` is that of its feedback."""
    return (folder / SECRET).is_file() and (folder / "timestamp.txt").is_file()


def release(root: Path, chapter: str, students: Collection[str], everyone: Collection[str]) -> str:
    """Release the feedback of these students, of everyone who has a page; return what went wrong.

    nbgrader itself stops at the first submission that came by another road.
    """
    app = autograde_app(root, chapter)
    left_out = set(everyone) - set(students)
    app.coursedir.student_id_exclude = ",".join(
        filter(None, [app.coursedir.student_id_exclude, *sorted(left_out)])
    )
    step = ExchangeReleaseFeedback(coursedir=app.coursedir, authenticator=None, parent=app)
    try:
        step.start()
    except (ExchangeError, OSError) as error:
        return f"nbgrader's exchange took nothing: {error or type(error).__name__}"
    return ""


class FeedbackGrades(GetGrades):  # type: ignore[misc]  # nbgrader is untyped
    """nbgrader's step, which also tells what a person gave from what nobody has scored yet.

    nbgrader shows both as a number: of a grade without any score it says 0.
    """

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Write scores and comments into the notebook; note whether all of it has a score."""
        self._unscored = 0
        nb, resources = super().preprocess(nb, resources)
        resources["nbgrader"]["unscored"] = self._unscored
        return nb, resources

    def _get_score(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        super()._get_score(cell, resources)
        role = cell.metadata.nbgrader
        grade = self.gradebook.find_grade(
            role["grade_id"], self.notebook_id, self.assignment_id, self.student_id
        )
        role["by_hand"] = grade.manual_score is not None
        role["unscored"] = grade.manual_score is None and grade.auto_score is None
        self._unscored += role["unscored"]
