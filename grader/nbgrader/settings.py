"""The settings that turn nbgrader's steps into ours. A course's nbgrader_config.py applies them."""

from __future__ import annotations

from traitlets.config import Config

from grader.nbgrader.release import IGNORED


def apply(config: Config) -> None:
    """Set folders and steps in nbgrader's configuration."""
    config.CourseDirectory.source_directory = "solutions"
    config.CourseDirectory.release_directory = "chapters"
    config.CourseDirectory.ignore = IGNORED
    config.Autograde.exporter_class = "grader.nbgrader.exporter.SubmissionExporter"
    config.Autograde.sanitize_preprocessors = [
        "grader.nbgrader.grade.ResetScores",
        "nbgrader.preprocessors.OverwriteCells",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    config.Autograde.autograde_preprocessors = [
        "grader.nbgrader.grade.GradeInBox",
        "grader.nbgrader.grade.SaveVerdicts",
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    # the notebook's answers and verdicts are all that a feedback page needs
    config.HTMLExporter.mathjax_url = ""
    config.HTMLExporter.require_js_url = ""
