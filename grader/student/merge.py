"""Merges a new version of a chapter into a student's notebook. Text goes in, text comes out.

Three notebooks: `base`, which the student's was made from; `mine`, the student's; `new`, the
course's. The outcome has the cells of `new` in its order, and between them all that is the
student's: answers in their solution cells, edited cells, cells of their own, each behind the cell
that it stood behind. Where both sides changed a cell, both are kept.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader.course.cells import grade_id_of, is_solution_cell, role_of
from grader.submission.program import is_stub
from grader.submission.rebuild import find_solution

Cells = list[dict[str, Any]]

_START = "start"
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass
class MergeReport:
    """What a merge did. `said` are sentences on what the student should look at."""

    answers: list[str] = field(default_factory=list)
    own: int = 0
    added: int = 0
    changed: int = 0
    removed: int = 0
    said: list[str] = field(default_factory=list)


def merge(
    base: Mapping[str, Any] | None, mine: Mapping[str, Any], new: Mapping[str, Any]
) -> tuple[dict[str, Any], MergeReport]:
    """Return the merged notebook and what was done. Without `base`, what differs is the student's.

    All three are as `notebooks.load` gives them; none is changed.
    """
    merging = _Merge(_by_key(base or {"cells": []}), list(mine["cells"]), _by_key(new))
    cells = merging.cells()
    return {
        "nbformat": 4,
        "nbformat_minor": max(5, int(new.get("nbformat_minor", 5))),
        "metadata": {
            **new["metadata"],
            **mine["metadata"],
            **{key: new["metadata"][key] for key in ("undertorch",) if key in new["metadata"]},
        },
        "cells": cells,
    }, merging.report


def lost(
    base: Mapping[str, Any] | None, mine: Mapping[str, Any], merged: Mapping[str, Any]
) -> Cells:
    """Return the student's cells whose text the merged notebook lacks. There must be none."""
    known = {_text(cell) for cell in (base or {"cells": []})["cells"]}
    there = {_text(cell) for cell in merged["cells"]}
    return [cell for cell in mine["cells"] if _text(cell) and _text(cell) not in known | there]


class _Merge:
    """One merge: which cell of the student's is which of the course's, and what becomes of it."""

    def __init__(
        self, base: dict[str, dict[str, Any]], mine: Cells, new: dict[str, dict[str, Any]]
    ) -> None:
        self._base, self._mine, self._new = base, mine, new
        self.report = MergeReport()
        self._known = {**base, **new}
        self._place: dict[str, int] = {}
        self._keys: dict[int, list[str]] = {}
        self._identify()
        self._after: dict[str, Cells] = {key: [] for key in [_START, *new]}
        self._ids = {cell.get("id") for cell in self._known.values()}

    def cells(self) -> Cells:
        """Return the merged cells."""
        slots = {key: self._slot(key) for key in self._new}
        last = _START
        for place, cell in enumerate(self._mine):
            keys = self._keys.get(place, [])
            there = [key for key in keys if key in self._new]
            if there:
                last = there[0]
            if self._is_own(place, keys, there):
                self._after[last].append(self._own(cell))
        merged = [*self._after[_START]]
        for key, slot in slots.items():
            merged += [slot] if slot is not None else []
            merged += self._after[key]
        return merged

    def _identify(self) -> None:
        """Find for each cell of the course the student's cell that it became."""
        solutions = [key for key, cell in self._known.items() if is_solution_cell(cell)]
        for key in solutions:
            name = grade_id_of(self._known[key]) or ""
            place, _ = find_solution(name, self._mine)
            if place is None:
                continue
            marked = grade_id_of(self._mine[place]) == name
            # a cell without the mark may be the answer all the same, as it is when it is graded
            if marked or (key in self._new and not self._is_given(self._mine[place])):
                self._match(key, place)
        for place, cell in enumerate(self._mine):
            key = _key(cell)
            if key in self._known and key not in solutions and place not in self._keys:
                rival = self._place.get(key)
                # of two cells with one id, the one that still holds the course's text
                if rival is None or (
                    self._same(key, cell) and not self._same(key, self._mine[rival])
                ):
                    if rival is not None:
                        del self._keys[rival]
                    self._match(key, place)
        for place, cell in enumerate(self._mine):  # ids get lost in old editors
            if place in self._keys:
                continue
            for key in self._known:
                if key not in self._place and key not in solutions and self._same(key, cell):
                    self._match(key, place)
                    break

    def _match(self, key: str, place: int) -> None:
        self._place[key] = place
        self._keys.setdefault(place, []).append(key)

    def _is_given(self, cell: Mapping[str, Any]) -> bool:
        """Say whether this is, word for word, a cell of the course's that is no solution cell."""
        return any(
            self._same(key, cell) for key, one in self._known.items() if not is_solution_cell(one)
        )

    def _same(self, key: str, cell: Mapping[str, Any]) -> bool:
        """Say whether a cell still is the course's, in the old version or the new."""
        return any(
            _text(cell) == _text(version[key]) and cell["cell_type"] == version[key]["cell_type"]
            for version in (self._base, self._new)
            if key in version
        )

    def _course_changed(self, key: str) -> bool:
        return key not in self._base or _text(self._base[key]) != _text(self._new[key])

    def _slot(self, key: str) -> dict[str, Any] | None:
        """Return what stands in the place of a cell of the new version; None for nothing."""
        new = self._new[key]
        place = self._place.get(key)
        mine = None if place is None else self._mine[place]
        if is_solution_cell(new):
            return self._solution(key, new, mine)
        if mine is None:
            # who deleted prose wants it away; what the course changed is news, and grade cells count
            if key in self._base and not self._course_changed(key) and not role_of(new):
                return None
            self.report.added += 1
            return dict(new)
        if _text(mine) == _text(new) and mine["cell_type"] == new["cell_type"]:
            return {**mine, "id": new["id"], "metadata": {**mine["metadata"], **new["metadata"]}}
        if self._same(key, mine):
            self.report.changed += 1
            return dict(new)
        if role_of(new) or self._course_changed(key):
            self.report.said.append(
                f"You had changed the cell that begins {_begin(mine)}. "
                "The course's text is there now; yours stands below it."
            )
            return dict(new)
        return {**mine, "id": new["id"]}

    def _solution(
        self, key: str, new: dict[str, Any], mine: dict[str, Any] | None
    ) -> dict[str, Any]:
        name = grade_id_of(new) or ""
        stubs = [version[key]["source"] for version in (self._base, self._new) if key in version]
        if mine is None:
            self.report.added += 1
            if key in self._base:
                self.report.said.append(f"`{name}`: its cell was missing; its stub is there again.")
            return dict(new)
        if not _text(mine) or (
            any(is_stub(mine["source"], stub) for stub in stubs) and not _has_comments(mine, stubs)
        ):
            self.report.changed += _text(mine) != _text(new)
            return dict(new)
        self.report.answers.append(name)
        if len(stubs) == 2 and not is_stub(stubs[0], stubs[1]):
            self.report.said.append(
                f"`{name}`: its stub changed; your answer stays as it is. "
                f"The stub now reads:\n{stubs[1].strip()}"
            )
        return {**mine, "id": new["id"], "metadata": {**mine["metadata"], **new["metadata"]}}

    def _is_own(self, place: int, keys: Sequence[str], there: Sequence[str]) -> bool:
        """Say whether a cell must be kept as the student's own, beside what its slot shows."""
        cell = self._mine[place]
        if not keys:
            return bool(_text(cell)) or not role_of(cell)
        if not there:  # the course dropped it
            key = keys[0]
            name = grade_id_of(cell)
            if self._same(key, cell):
                self.report.removed += 1
                return False
            if name:
                self.report.said.append(
                    f"`{name}` is no longer part of this chapter. What you wrote stays, as a cell "
                    "of your own."
                )
            return True
        key = there[0]
        if is_solution_cell(self._new[key]):
            return False  # the slot holds it
        edited = not self._same(key, cell)
        return edited and bool(role_of(self._new[key]) or self._course_changed(key))

    def _own(self, cell: dict[str, Any]) -> dict[str, Any]:
        """Return a cell as one of the student's own: no mark of nbgrader's, an id of its own."""
        self.report.own += 1
        gone = ("nbgrader", "undertorch", "deletable", "editable") if role_of(cell) else ()
        own = {**cell, "metadata": {k: v for k, v in cell["metadata"].items() if k not in gone}}
        own["id"] = next(one for one in _ids_for(cell) if one not in self._ids)
        self._ids.add(own["id"])
        if own["cell_type"] == "code":
            own = {"outputs": [], "execution_count": None, **own}
        return own


def _by_key(notebook: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a released notebook's cells by what they are known by."""
    return {_key(cell): cell for cell in notebook["cells"]}


def _key(cell: Mapping[str, Any]) -> str:
    """Return the name that nbgrader knows a cell by, else its id."""
    role = role_of(cell)
    return f"graded {role.grade_id}" if role else f"id {cell.get('id', '')}"


def _text(cell: Mapping[str, Any]) -> str:
    return "\n".join(line.rstrip() for line in cell["source"].strip().splitlines())


def _has_comments(mine: Mapping[str, Any], stubs: Sequence[str]) -> bool:
    """Say whether a stub has notes of the student's in it: comments are no answer, and not nothing."""
    return all(_text(mine) != _text({"source": stub}) for stub in stubs)


def _begin(cell: Mapping[str, Any]) -> str:
    first = (_text(cell) or "(empty)").splitlines()[0]
    return f"`{first if len(first) <= 50 else first[:49] + '…'}`"


def _ids_for(cell: Mapping[str, Any]) -> Iterator[str]:
    """Yield ids that a cell may have: its own, then ones made from its text."""
    mine = cell.get("id")
    if isinstance(mine, str) and _ID.fullmatch(mine):
        yield mine
    stem = hashlib.sha256(cell["source"].encode("utf-8", "replace")).hexdigest()[:8]
    number = 0
    while True:
        yield f"own-{stem}-{number}" if number else f"own-{stem}"
        number += 1
