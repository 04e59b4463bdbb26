"""Verdicts that a kernel's state gives before anything is asked: the cell did not run, or not as it is now."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from grader.course.cells import grade_id_of
from grader.course.course import Chapter, Exercise
from grader.evidence.outcome import Outcome
from grader.student import cells_run
from grader.student.cells_run import CellRun, Stopped
from grader.submission.names import binds, provides
from grader.submission.program import is_stub
from grader.submission.rebuild import Unreadable, read_notebook
from grader.verdict.grading import Attempt
from grader.verdict.verdict import Message, Verdict, without_checks


def unready(
    chapter: Chapter,
    exercise: Exercise,
    attempt: Attempt,
    names: dict[str, Any],
    given: Iterable[str],
) -> Verdict | None:
    """Return the verdict on an exercise whose cell did not run, or did not run as it is now; else None.

    `names` are the kernel's, `given` the texts of the released notebook's cells.
    """
    run, name = _last_run(exercise), name_asked_for(exercise)
    defined = name in names and run is not None and run.holds(attempt.source)
    if run is not None and run.stopped is not None and not defined:
        if is_stub(run.text, exercise.stub):  # the stub of a class raises before there is a class
            message = Message("Nothing here yet: the cell still holds its stub.")
            return without_checks(exercise, Outcome.NOT_ATTEMPTED, message)
        return without_checks(exercise, Outcome.FAILED, _stopped(name, run.stopped))
    if run is not None and run.cell == exercise.id and _defines_other(run, exercise):
        return without_checks(exercise, Outcome.FAILED, _missing(name, run))
    if run is None and attempt.source is None and name not in names:
        others = {one.id for one in chapter.exercises}
        others |= {name for text in given for name in provides(text)}
        own = [name for name, value in names.items() if callable(value) and name not in others]
        if cells_run.slip_for(name, own) is None:
            message = Message(f"Run the cell that defines `{name}`, then this one.")
            return without_checks(exercise, Outcome.NOT_RUN, message)
    return None


def name_asked_for(exercise: Exercise) -> str:
    """Return the name that an answer defines: the exercise's own; of a few it is that of their stub."""
    provided = provides(exercise.stub)
    return exercise.id if exercise.id in provided or len(provided) != 1 else min(provided)


def _last_run(exercise: Exercise) -> CellRun | None:
    return cells_run.last_run(exercise.id, name_asked_for(exercise))


def judged_source(exercise: Exercise, attempt: Attempt) -> str | None:
    """Return the text that a verdict of `unready` is on: the exercise's cell as it was run last."""
    run = _last_run(exercise)
    return attempt.source if run is None else run.text


def _defines_other(run: CellRun, exercise: Exercise) -> bool:
    """Say whether the exercise's own cell ran, and does not define its name.

    The kernel may know the name from an earlier run; whoever grades the file does not.
    """
    return (
        run.stopped is None
        and not binds(run.text, name_asked_for(exercise))
        and not is_stub(run.text, exercise.stub)
    )


def _missing(exercise: str, run: CellRun) -> Message:
    close = cells_run.slip_for(exercise, provides(run.text))
    slip = f" It defines `{close}`: is that a slip?" if close else ""
    return Message(f"The cell as you last ran it does not define `{exercise}`.{slip}")


def _stopped(exercise: str, stopped: Stopped) -> Message:
    where = f", line {stopped.line}" if stopped.line else ""
    how = f"stopped before it defined `{exercise}`" if stopped.compiled else "did not run"
    rows = [(f"line {stopped.line}", stopped.source)] if stopped.source else []
    rows += [("Python says", stopped.message)] if stopped.message else []
    return Message(f"Your last edit {how}: {stopped.type}{where}.", tuple(rows))


def edited_since(exercise: Exercise, attempt: Attempt) -> tuple[str, ...]:
    """Say that the saved notebook holds a text that was written after the graded one had run.

    An edit that is not saved yet is no news: it was run, and will be saved. Jupyter names the notebook
    of a kernel in `JPY_SESSION_NAME`; elsewhere nothing is said.
    """
    path, run = Path(os.environ.get("JPY_SESSION_NAME", "")), _last_run(exercise)
    if path.suffix != ".ipynb" or run is None or not run.holds(attempt.source):
        return ()
    try:
        saved_later = path.stat().st_mtime > run.when
        cells = read_notebook(path)["cells"] if saved_later else []
    except (Unreadable, OSError):
        return ()
    saved = [cell["source"] for cell in cells if grade_id_of(cell) == exercise.id]
    if not saved or saved[-1].strip() == run.text.strip():
        return ()
    return (
        "You changed the cell after you ran it, and the saved notebook holds that change. This is "
        "the verdict on what you ran: run the cell again, then this one.",
    )
