"""Runs a chapter's reference notebook again, and compares each output with the one it was built with."""

from __future__ import annotations

import subprocess
import sys

from grader.building.environment import without_settings
from grader.course.course import Chapter

NBVAL = ("-m", "pytest", "-q", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider")


def run_again(chapter: Chapter) -> str:
    """Run the notebook with nbval; return "" where every output is the same, else what it printed."""
    done = subprocess.run(
        [sys.executable, *NBVAL, str(chapter.reference)],
        cwd=chapter.root,
        env=without_settings(),
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr
