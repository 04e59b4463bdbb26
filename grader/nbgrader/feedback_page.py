"""What nbgrader's feedback page is told of a grade beside its number."""

from __future__ import annotations

from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import GetGrades


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
