"""A student's journal: one line for each verdict, hint and solution that they saw.

It lies in `.undertorch/` of the folder that they work in, written by the notebook's `grade` and by
the commands. Lines are added and never changed, so that a kernel and a terminal can write at once.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from grader.submission.names import plain_python
from grader.verdict.verdict import Verdict

STATE = ".undertorch"
"""The folder, inside a student's own, for what the commands remember."""

_NAME = "journal.jsonl"


@dataclass(frozen=True)
class Entry:
    """One line. `kind` is "verdict", "hint" or "solution"; `answer` a digest of the judged text.

    `when` is in seconds since 1970, `by` who judged: "notebook" or "check".
    """

    kind: str
    chapter: str
    exercise: str
    when: float
    outcome: str = ""
    points: float = 0.0
    max_points: float = 0.0
    answer: str = ""
    by: str = ""
    number: int = 0


def answer_digest(source: str | None) -> str:
    """Return what tells one answer from another: comments and white space do not."""
    text = plain_python(source or "").strip()
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        text = ast.dump(ast.parse(text))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def verdict_entry(chapter: str, verdict: Verdict, source: str | None, by: str) -> Entry:
    """Return the line for a verdict on a solution cell's text."""
    return Entry(
        "verdict",
        chapter,
        verdict.exercise,
        time.time(),
        str(verdict.outcome),
        verdict.points,
        verdict.max_points,
        answer_digest(source),
        by,
    )


def folder_around(start: Path) -> Path | None:
    """Return the nearest folder, `start` or above, that has a journal's place."""
    for folder in (start, *start.parents):
        if (folder / STATE).is_dir():
            return folder
    return None


def write(folder: Path, entries: Iterable[Entry]) -> None:
    """Add lines to the journal of a student's folder. One write each: lines never mix."""
    state = folder / STATE
    state.mkdir(exist_ok=True)
    text = "".join(json.dumps(asdict(entry)) + "\n" for entry in entries).encode()
    descriptor = os.open(state / _NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)


_kept: list[Entry] = []
"""What this process was told and has no folder for, such as a notebook's kernel on a host."""


def remember(folder: Path | None, entry: Entry) -> None:
    """Add a line to the journal of a student's folder; without one, keep it as long as we run."""
    if folder is None:
        _kept.append(entry)
    else:
        write(folder, [entry])


def recall(folder: Path | None) -> list[Entry]:
    """Return all that was remembered for a folder, or without one."""
    return list(_kept) if folder is None else read(folder)


def last_tried(entries: Iterable[Entry]) -> str | None:
    """Return the exercise that was graded or asked a hint for last."""
    tried = [entry.exercise for entry in entries if entry.kind in ("verdict", "hint")]
    return tried[-1] if tried else None


def read(folder: Path) -> list[Entry]:
    """Return the journal's lines, oldest first. What is no such line is passed over."""
    try:
        lines = (folder / STATE / _NAME).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [entry for line in lines if (entry := _entry(line)) is not None]


_FIELDS = tuple(field.name for field in fields(Entry))


def _entry(line: str) -> Entry | None:
    try:
        data: Any = json.loads(line)
        entry = Entry(**{name: data[name] for name in _FIELDS if name in data})
        return entry if isinstance(entry.when, int | float) else None
    except (ValueError, TypeError, AttributeError):
        return None
