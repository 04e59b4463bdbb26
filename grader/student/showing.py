"""Shows a verdict where someone reads it, and gives nbgrader the points where a program does.

nbgrader takes a grade cell's result for its points, and gives all of them where there is no number.
So the number is left out only where the kernel is known to have a person before it.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from IPython.core.getipython import get_ipython
from IPython.display import display

from grader.feedback.render import Report, Trouble, score_text

_VALIDATING = "NBGRADER_VALIDATING"
"""Set by nbgrader for its Validate."""


@dataclass(frozen=True)
class Points:
    """A grade cell's result where nobody is known to read: the points, a bare number."""

    text: str

    def __repr__(self) -> str:
        return self.text


def show(shown: Report | Trouble) -> Points | None:
    """Display a verdict, or why there is none. Return its points for a program; None for a person."""
    display(shown)
    if someone_reads():
        return None
    if _VALIDATING in os.environ and not _is_full(shown):
        # nbgrader's Validate shows what a cell wrote here; else it says "Partial credit" of everything
        print(repr(shown), file=sys.stderr)
    return Points(score_text(shown.verdict) if isinstance(shown, Report) else "0.0")


def _is_full(shown: Report | Trouble) -> bool:
    return isinstance(shown, Report) and shown.verdict.points >= shown.verdict.max_points


def someone_reads() -> bool:
    """Say whether it is known that a person ran this cell.

    A front end tells the kernel with each cell whether its reader could be asked something (Jupyter's
    `allow_stdin`). What runs notebooks as a program says no: nbclient, and with it nbgrader and
    nbconvert; nbval.
    """
    if any(name in os.environ for name in ("NBGRADER_EXECUTION", _VALIDATING)):
        return False
    shell = get_ipython()
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return type(shell).__name__ == "TerminalInteractiveShell"
    try:
        request = kernel.get_parent("shell")
        return request["content"].get("allow_stdin") is True
    except (AttributeError, KeyError, TypeError, LookupError):
        return False
