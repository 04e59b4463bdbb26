"""Makes the released notebook with nbgrader's own generate_assignment, without a gradebook."""

from __future__ import annotations

from pathlib import Path

from nbgrader.apps import NbGraderAPI
from traitlets.config import Config

from grader.nbgrader import commands_on_path
from grader.nbgrader.gradebook import spare_alembic


def release(root: Path, chapter: str) -> None:
    """Write `chapters/<chapter>/` from `solutions/<chapter>/` in the course at `root`."""
    commands_on_path()
    spare_alembic()
    config = Config()
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.source_directory = "solutions"
    config.CourseDirectory.release_directory = "chapters"
    config.CourseDirectory.ignore = IGNORED
    api = NbGraderAPI(config=config)
    result = api.generate_assignment(chapter, force=True, create=True)
    if not result["success"]:
        raise RuntimeError(f"nbgrader generate_assignment {chapter} failed:\n{result['log']}")


IGNORED = [
    ".ipynb_checkpoints",
    "*.pyc",
    "__pycache__",
    "feedback",
    "*.pct.py",  # sources; a student's own .py must travel
]
"""What nbgrader leaves where it is. `nbgrader_config.py` uses the same list."""
