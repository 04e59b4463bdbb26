"""The settings that turn nbgrader's steps into ours. A course's nbgrader_config.py applies them."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path

from sqlalchemy.exc import SAWarning
from traitlets.config import Config

from grader.course.course import CourseError
from grader.course.course_file import read_course_file
from grader.feedback import style
from grader.nbgrader.late import policy
from grader.nbgrader.release import IGNORED


def apply(config: Config) -> None:
    """Set folders and steps in nbgrader's configuration."""
    # nbgrader 0.9.6 builds submissions in an order that SQLAlchemy 2 warns of, three times each
    warnings.filterwarnings("ignore", category=SAWarning, module="nbgrader.api")
    config.CourseDirectory.source_directory = "solutions"
    config.CourseDirectory.release_directory = "chapters"
    config.CourseDirectory.ignore = IGNORED
    config.Autograde.exporter_class = "grader.nbgrader.exporter.SubmissionExporter"
    # nbgrader's OverwriteCells and CheckCellMetadata are done once per run, on the notebook that
    # every submission is rebuilt from; SaveVerdicts does the work of its SaveAutoGrades and
    # AssignLatePenalties in one transaction
    config.Autograde.sanitize_preprocessors = ["grader.nbgrader.grade.ResetScores"]
    config.Autograde.autograde_preprocessors = [
        "grader.nbgrader.grade.GradeInBox",
        "grader.nbgrader.grade.SaveVerdicts",
    ]
    # `nbgrader export` without a name: nbgrader's own writes 0 for what nobody has scored, and formulas
    config.ExportApp.plugin_class = "grader.nbgrader.exports.CsvExporter"
    # our own feedback page: nbgrader's loads scripts from other hosts
    config.GenerateFeedback.preprocessors = [
        "grader.nbgrader.feedback_page.FeedbackGrades",
        "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    ]
    config.GenerateFeedback.HTMLExporter.template_name = "undertorch"
    config.GenerateFeedback.HTMLExporter.extra_template_basedirs = [
        str(Path(__file__).parent / "templates")
    ]
    config.GenerateFeedback.HTMLExporter.filters = {
        "answer_html": "grader.nbgrader.highlight.answer_html"
    }
    # where style.css is, the colours and type that a verdict has too
    config.GenerateFeedback.HTMLExporter.extra_template_paths = [str(Path(style.__file__).parent)]


def apply_course_file(config: Config, folder: Path) -> None:
    """Set what an instructor's course folder needs, as its course file says.

    Ends the program if the file is wrong: nbgrader only logs what a configuration raises, and
    would go on without ours, that is, without a sandbox.
    """
    try:
        settings = read_course_file(folder)
    except CourseError as error:
        raise SystemExit(f"undertorch: {error}") from None
    apply(config)
    config.CourseDirectory.source_directory = "source"
    config.CourseDirectory.release_directory = "release"
    config.CourseDirectory.course_id = settings.id
    if settings.exchange:
        config.Exchange.root = settings.exchange
    config.NbGraderAPI.timezone = settings.timezone  # what formgrader shows; Exchange stays at UTC
    config.GradeInBox.counts = settings.counts.value
    policy(config, asdict(settings.late), settings.extensions)


apply_chosen = apply_course_file
"""Its name in course folders that were made before; their nbgrader_config.py imports it."""
