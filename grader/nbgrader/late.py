"""Late work: nbgrader's plugin with a course file's policy, and where a penalty is written.

nbgrader hands a plugin the student, the score and the seconds late, which count from the due date
with its extension in the gradebook. So extensions go there first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from nbgrader.api import Gradebook, SubmittedAssignment, SubmittedNotebook
from nbgrader.plugins import BasePlugin
from nbgrader.preprocessors import AssignLatePenalties
from traitlets import Dict, Float, Unicode

DAY = 24 * 60 * 60


class LateWork(BasePlugin):  # type: ignore[misc]  # nbgrader is untyped
    """A share of the points achieved for each day begun after the due date."""

    percent_per_day = Float(0, help="Percent of the points achieved, for each day begun.").tag(
        config=True
    )
    grace_minutes = Float(
        0, help="Lateness up to this costs nothing; after it, days count from the due date."
    ).tag(config=True)
    most_percent = Float(100, help="More than this is never taken.").tag(config=True)
    extensions = Dict(
        value_trait=Dict(value_trait=Unicode()),
        help="New due dates by student and assignment, in UTC: 2027-03-01T22:59:00.",
    ).tag(config=True)

    def late_submission_penalty(
        self, student_id: str, score: float, total_seconds_late: float
    ) -> float | None:
        """Return the points to take from a score; None if there is nothing to take."""
        if total_seconds_late <= self.grace_minutes * 60:
            return None
        days = math.ceil(total_seconds_late / DAY)
        percent = min(days * self.percent_per_day, self.most_percent)
        return round(score * percent / 100, 2) or None

    def extend(self, submission: SubmittedAssignment) -> None:
        """Give a submission the extension that the course file grants, or none."""
        due = submission.assignment.duedate
        until = self.extensions.get(submission.student.id, {}).get(submission.assignment.name)
        submission.extension = _later(due, until) if due and until else None


def _later(due: datetime, until: str) -> timedelta:
    return max(timedelta(0), datetime.fromisoformat(until) - due)


def penalize(gradebook: Gradebook, notebook: SubmittedNotebook, late: AssignLatePenalties) -> None:
    """Write the late penalty of a submitted notebook anew, from its score and its times.

    The caller commits.
    """
    late.init_plugin()
    if isinstance(late.plugin_inst, LateWork):
        late.plugin_inst.extend(notebook.assignment)
    notebook.late_submission_penalty = None
    seconds = notebook.assignment.total_seconds_late
    if seconds <= 0:
        return
    gradebook.db.flush()
    gradebook.db.refresh(notebook)  # the sum of the new scores
    student = notebook.assignment.student.id
    penalty = late.plugin_inst.late_submission_penalty(student, notebook.score, seconds)
    if penalty is not None:
        notebook.late_submission_penalty = late._check_late_penalty(notebook, penalty)


def policy(config: Any, late: Mapping[str, float], extensions: Mapping[str, Any]) -> None:
    """Make `LateWork` nbgrader's plugin, with this policy."""
    config.AssignLatePenalties.plugin_class = LateWork
    config.LateWork.update(late)
    config.LateWork.extensions = {
        student: {chapter: until.isoformat() for chapter, until in chapters.items()}
        for student, chapters in extensions.items()
    }
