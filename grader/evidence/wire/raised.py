"""A student's exception as data: its type, its message, and the student's own lines it passed."""

from __future__ import annotations

import re
import traceback
from typing import Any

_LINES = 8
"""Lines of a student's code kept per exception: a recursion would bring a thousand."""


class Explained(Exception):
    """What stopped the student's code, seen by a tool of ours: its message is a sentence to be shown as it is."""


class Relayed(Exception):
    """An exception that the student's code raised in another process; `report` is its report there."""

    def __init__(self, report: dict[str, Any]) -> None:
        super().__init__(report["message"])
        self.report = report


def report(error: BaseException) -> dict[str, Any]:
    """Return an exception as plain data."""
    if isinstance(error, Relayed):
        return error.report
    frames = traceback.extract_tb(error.__traceback__)
    where = [
        (frame.name, frame.lineno or 0, frame.line or "")
        for frame in frames
        if _is_students(frame.filename)
    ]
    message = text(error)
    if isinstance(error, SyntaxError):
        where = [("", error.lineno or 0, (error.text or "").rstrip("\n"))]
    else:
        message, inner = _from_a_worker(message)
        where += inner
    return {
        "type": text(type(error).__name__),
        "mro": [text(kind.__name__) for kind in type(error).__mro__],
        "message": message,
        "where": where[-_LINES:],
        "notes": _notes(error),
    }


def _notes(error: BaseException) -> str:
    """Return what was noted on an exception: by a probe, its inputs (see `grader.inside.probe.each`)."""
    notes = vars(error).get("__notes__")
    return "\n".join(map(text, notes[:_LINES])) if isinstance(notes, list) else ""


def text(value: object) -> str:
    """Return `str(value)`, its first 2000 characters."""
    try:
        return str(value)[:2000]
    except BaseException:  # a student's __str__ may do anything
        return f"<{type(value).__name__} that cannot be printed>"


_WORKER = re.compile(r"Caught \w+ in DataLoader (worker process \d+)\.\nOriginal Traceback .*\n")
_FRAME = re.compile(r'  File "(.+)", line (\d+), in (.+)\n(?:    (.*)\n)?')


def _from_a_worker(message: str) -> tuple[str, list[tuple[str, int, str]]]:
    """Take apart the message into which a DataLoader puts a worker's whole traceback.

    It names files of torch and of this machine; the student's lines and last line are what counts.
    """
    head = _WORKER.match(message)
    if head is None:
        return message, []
    where = [
        (name, int(number), line or "")
        for filename, number, name, line in _FRAME.findall(message)
        if _is_students(filename)
    ]
    said = [line for line in message.splitlines()[2:] if not line.startswith(" ")]
    what = said[0].partition(": ")[2] if said else ""
    return f"{what} (in {head.group(1)})".lstrip(), where


def _is_students(filename: str) -> bool:
    return (filename.startswith("<") and "frozen" not in filename) or "ipykernel" in filename
