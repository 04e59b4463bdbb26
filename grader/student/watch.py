"""Tells which answers changed since the last look at a student's files.

It looks at times of change, a few files at a time: that works on every disk that a notebook may lie
on, network drives and Windows' among them, where notices of change do not arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.course.course import CourseError
from grader.student.targets import Target
from grader.student.work import Work, read_work

Stamp = tuple[tuple[int, int, int] | None, ...]


@dataclass
class Watcher:
    """What was seen of each target's files. The first look finds nothing changed."""

    targets: Sequence[Target]
    _stamps: dict[int, Stamp] = field(default_factory=dict)
    _works: dict[int, Work] = field(default_factory=dict)
    _doubtful: dict[int, Stamp] = field(default_factory=dict)

    def look(self) -> tuple[list[tuple[Work, list[str]]], list[str]]:
        """Return the work with exercises whose answers changed, and what cannot be read."""
        changed, troubles = [], []
        for number, target in enumerate(self.targets):
            stamp = _stamp(target)
            if stamp == self._stamps.get(number):
                continue
            try:
                work = read_work(target.chapter, target.notebook, alone=target.named)
            except CourseError as error:
                # perhaps it is being written this moment: only said if it stays like this
                if self._doubtful.get(number) == stamp:
                    self._stamps[number] = stamp
                    troubles.append(str(error))
                self._doubtful[number] = stamp
                continue
            self._stamps[number] = stamp
            before = self._works.get(number)
            self._works[number] = work
            if before is None:
                continue
            names = [
                name for name in target.exercises if work.attempts[name] != before.attempts[name]
            ]
            if names:
                changed.append((work, names))
        return changed, troubles


def _stamp(target: Target) -> Stamp:
    folder = target.notebook.parent
    paths = [target.notebook, *(folder / f"{exercise}.py" for exercise in target.exercises)]
    return tuple(map(_state, paths))


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino
