"""Which cells a kernel ran, and how each ended.

A cell that does not compile defines nothing: the kernel still holds what an earlier run defined, and
a verdict on that would be a verdict on a text that nobody sees any more.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from grader.submission.names import plain_python

SLIP = 0.75
"""How alike two names are of which one may be a slip of the other: `difflib`'s ratio."""


@dataclass(frozen=True)
class Stopped:
    """What ended a cell. `line` and `source` are the cell's own, as far as they are known;
    `compiled` says that its first part ran.
    """

    type: str
    message: str
    line: int
    source: str
    compiled: bool


@dataclass(frozen=True)
class CellRun:
    """One run. `cell` is the id by which the front end knows the cell, if it said one."""

    cell: str
    text: str
    when: float
    stopped: Stopped | None = None

    def is_for(self, exercise: str, name: str) -> bool:
        """Say whether this is an exercise's own cell, or a text that means to define that name.

        A text that does not compile can only be looked at, not read.
        """
        name = re.escape(name)
        means = (
            rf"^[ \t]*(?:async[ \t]+def|def|class)[ \t]+{name}\b|^{name}[ \t]*(?::[^=\n]+)?=(?!=)"
        )
        return self.cell == exercise or re.search(means, self.text, re.MULTILINE) is not None

    def holds(self, source: str | None) -> bool:
        """Say whether this cell's text is that source, which IPython may have transformed."""
        return source is not None and plain(self.text) == plain(source)


_runs: list[CellRun] = []
"""Of this kernel, oldest first. A kernel that ran ten thousand cells keeps some megabytes of text."""


def watch() -> None:
    """Remember every cell that this kernel runs from now on. Without a kernel, nothing is done."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is not None:
        shell.events.register("pre_run_cell", _begun)  # once, however often it is asked
        shell.events.register("post_run_cell", _ended)


def last_run(exercise: str, name: str) -> CellRun | None:
    """Return the last run of an exercise's cell, or of one that means to define the name it asks for."""
    return next((run for run in reversed(_runs) if run.is_for(exercise, name)), None)


def slip_for(exercise: str, names: Iterable[str]) -> str | None:
    """Return the one of these names that may be meant for an exercise, if there is one."""
    close = get_close_matches(exercise, names, n=1, cutoff=SLIP)
    return close[0] if close else None


def plain(source: str) -> str:
    """Return a cell's text as the kernel compiles it, white space around it aside."""
    return plain_python(source).strip()


def _begun(info: Any) -> None:
    """Take down a run that begins: a cell may define an answer and grade it. IPython calls this."""
    if not info.silent and isinstance(info.raw_cell, str):
        _runs.append(_run(info, None))


def _ended(result: Any) -> None:
    """Take down how a run ended: IPython calls this with its `ExecutionResult`, None if it was cut short."""
    info = getattr(result, "info", None)
    if info is None or info.silent or not isinstance(info.raw_cell, str):
        return
    if _runs and _runs[-1].text == info.raw_cell:
        _runs.pop()
    _runs.append(_run(info, _stopped(result, info.raw_cell)))


def _run(info: Any, stopped: Stopped | None) -> CellRun:
    return CellRun(str(info.cell_id or ""), info.raw_cell, time.time(), stopped)


def _stopped(result: Any, text: str) -> Stopped | None:
    error = result.error_before_exec or result.error_in_exec
    if error is None:
        return None
    if isinstance(error, SyntaxError):
        line, message = error.lineno or 0, error.msg or ""
    else:
        line, message = _line_of_cell(error), str(error)
    lines = text.split("\n")
    source = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    compiled = result.error_before_exec is None and not isinstance(error, SyntaxError)
    return Stopped(type(error).__name__, message, line, source, compiled)


def _line_of_cell(error: BaseException) -> int:
    """Return the cell's own line that was running: the outermost one that is no part of IPython."""
    trace = error.__traceback__
    while trace is not None:
        if (
            trace.tb_frame.f_code.co_name == "<module>"
            and trace.tb_frame.f_globals.get("__name__") == "__main__"
        ):
            return trace.tb_lineno
        trace = trace.tb_next
    return 0
