"""Merges a new version of a chapter into a student's notebook. Text goes in, text comes out.

Three notebooks: `base`, which the student's was made from; `mine`, the student's; `new`, the
course's. The outcome has the cells of `new` in its order, and between them all that is the
student's: answers in their solution cells, edited cells, cells of their own, each behind the cell
that it stood behind. Where both sides changed a cell, their lines are merged. Where they changed the
same lines, both versions stand there, marked: the course's as comments where code allows it, else
the student's in a cell of its own below.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader.course.cells import grade_id_of, is_solution_cell, role_of
from grader.student.cell_text import merge_answer, merge_code, merge_prose
from grader.student.counterparts import text_of
from grader.student.slots import Slot, find_places, same, slots_of
from grader.submission.program import is_stub

Cells = list[dict[str, Any]]

HEADING = (
    "**Your version of the cell above.** It could not be merged with the course's. Keep what you "
    "need of the two, and delete the rest."
)
"""What stands above a text of the student's that could not be merged into the course's."""

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass
class MergeReport:
    """What a merge did. `said` are sentences on what the student should look at."""

    answers: list[str] = field(default_factory=list)
    own: int = 0
    added: int = 0
    changed: int = 0
    merged: int = 0
    removed: int = 0
    said: list[str] = field(default_factory=list)


def merge(
    base: Mapping[str, Any] | None, mine: Mapping[str, Any], new: Mapping[str, Any]
) -> tuple[dict[str, Any], MergeReport]:
    """Return the merged notebook and what was done. Without `base`, what differs is the student's.

    All three are as `notebooks.load` gives them; none is changed.
    """
    merging = _Merge(base["cells"] if base else [], list(mine["cells"]), new["cells"])
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
    """Return the student's cells that the merged notebook lacks. There must be none.

    A cell is there if its text is, or if one cell has all its lines that are not the course's.
    """
    known = {text_of(cell) for cell in (base or {"cells": []})["cells"]}
    given = {line for text in known for line in _bare(text)}
    there = [text_of(cell) for cell in merged["cells"]]
    missing = [c for c in mine["cells"] if text_of(c) and text_of(c) not in {*known, *there}]
    return [
        cell
        for cell in missing
        if not any(
            _holds(text, [line for line in _bare(text_of(cell)) if line not in given])
            for text in there
        )
    ]


def _bare(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n")]


def _holds(text: str, own: Sequence[str]) -> bool:
    """Say whether a text has these lines in this order."""
    rest = iter(_bare(text))
    return all(line in rest for line in own)


class _Merge:
    """One merge: which cell of the student's is which of the course's, and what becomes of it."""

    def __init__(self, base: Cells, mine: Cells, new: Cells) -> None:
        self.report = MergeReport()
        self._mine = mine
        self._slots = slots_of(base, new)
        self._places = find_places(self._slots, mine, knows_old=bool(base))
        self._apart: set[int] = set()  # places of texts that could not be merged
        self._ids = {cell.get("id") for cell in [*base, *new]}

    def cells(self) -> Cells:
        """Return the merged cells."""
        slots: dict[int, list[int]] = {}
        for number, place in self._places.items():
            slots.setdefault(place, []).append(number)
        shown = [self._shown(number) for number, slot in enumerate(self._slots) if slot.new]
        after: list[Cells] = [[] for _ in [None, *shown]]  # the first stands before all
        last = 0
        for place, cell in enumerate(self._mine):
            there = [number for number in slots.get(place, []) if number < len(shown)]
            if there:
                last = there[0] + 1
                after[last] += self._heading_and_own(cell) if place in self._apart else []
            elif place in slots:
                after[last] += self._dropped(self._slots[slots[place][0]], cell)
            elif text_of(cell) or not role_of(cell):
                after[last].append(self._own(cell))
        merged = list(after[0])
        for slot, own in zip(shown, after[1:], strict=True):
            merged += [*([slot] if slot else []), *own]
        return merged

    def _shown(self, number: int) -> dict[str, Any] | None:
        """Return what stands in the place of a cell of the new version; None for nothing."""
        slot, place = self._slots[number], self._places.get(number)
        new = slot.new
        assert new is not None
        mine = None if place is None else self._mine[place]
        if is_solution_cell(new):
            return self._solution(slot, new, mine)
        if mine is None or place is None:
            # who deleted prose wants it away; what the course changed is news, and grade cells count
            if not slot.changed and not role_of(new):
                return None
            self.report.added += 1
            return dict(new)
        if same(mine, new):
            return {**mine, "id": new["id"], "metadata": _metadata(mine, new)}
        if not slot.changed and not role_of(new):
            return {**mine, "id": new["id"], "metadata": _metadata(mine, new)}
        if slot.is_given(mine) or not text_of(mine):
            self.report.changed += 1
            return dict(new)
        merged = None if role_of(new) or slot.base is None else _merged(slot.base, mine, new)
        if merged is None:
            self._apart.add(place)
            whose = "Both you and the course" if slot.changed else "You"
            self.report.said.append(
                f"{whose} changed the cell that begins {_begin(new)}. The course's text is there; "
                "yours stands below it, under a heading."
            )
            return dict(new)
        source, marked = merged
        self.report.merged += 1
        both = f"Both you and the course changed the cell that begins {_begin(mine)}"
        self.report.said.append(
            f"{both}, and the same lines of it. Yours run; the course's stand beside them as "
            "comments. Look for `── update`."
            if marked
            else f"{both}, at different lines. It has both changes."
        )
        attachments = {**mine.get("attachments", {}), **new.get("attachments", {})}
        return {
            **new,
            "source": source,
            "metadata": _metadata(mine, new),
            **({"attachments": attachments} if attachments else {}),
        }

    def _solution(
        self, slot: Slot, new: dict[str, Any], mine: dict[str, Any] | None
    ) -> dict[str, Any]:
        name = grade_id_of(new) or ""
        stubs = [version["source"] for version in (slot.base, slot.new) if version]
        if mine is None:
            self.report.added += 1
            if slot.base:
                self.report.said.append(f"`{name}`: its cell was missing; its stub is there again.")
            return dict(new)
        if not text_of(mine) or (
            any(is_stub(mine["source"], stub) for stub in stubs) and not _has_comments(mine, stubs)
        ):
            self.report.changed += text_of(mine) != text_of(new)
            return dict(new)
        self.report.answers.append(name)
        source = mine["source"]
        if slot.base and slot.changed:
            source, news = merge_answer(slot.base["source"], source, new["source"])
            if news:
                where = "The new one stands above it, as comments."
                if source == mine["source"]:
                    where = f"The stub now reads:\n{new['source'].strip()}"
                self.report.said.append(
                    f"`{name}`: its stub changed; your answer stays as it is. {where}"
                )
        return {**mine, "id": new["id"], "metadata": _metadata(mine, new), "source": source}

    def _dropped(self, slot: Slot, cell: dict[str, Any]) -> Cells:
        """Return what stays of a cell that the course no longer has."""
        if slot.is_given(cell) or not text_of(cell):
            self.report.removed += 1
            return []
        name = grade_id_of(slot.one)
        what = f"`{name}`" if name else f"The cell that begins {_begin(slot.one)}"
        self.report.said.append(
            f"{what} is no longer part of this chapter. What you wrote stays, as a cell of your own."
        )
        return [self._own(cell)]

    def _heading_and_own(self, cell: dict[str, Any]) -> Cells:
        text = {"cell_type": "markdown", "metadata": {}, "source": HEADING}
        return [{**text, "id": self._own_id(text)}, self._own(cell)]

    def _own(self, cell: dict[str, Any]) -> dict[str, Any]:
        """Return a cell as one of the student's own: no mark of nbgrader's, an id of its own."""
        self.report.own += 1
        own = {**cell, "metadata": _unmarked(cell)}
        own["id"] = self._own_id(cell)
        if own["cell_type"] == "code":
            own = {"outputs": [], "execution_count": None, **own}
        return own

    def _own_id(self, cell: Mapping[str, Any]) -> str:
        found = next(one for one in _ids_for(cell) if one not in self._ids)
        self._ids.add(found)
        return found


def _merged(
    base: Mapping[str, Any], mine: Mapping[str, Any], new: Mapping[str, Any]
) -> tuple[str, bool] | None:
    """Return one text for a cell that both changed, and whether both stand in it; None for none."""
    kinds = {cell["cell_type"] for cell in (base, mine, new)}
    sources = (base["source"], mine["source"], new["source"])
    if kinds == {"code"}:
        return merge_code(*sources)
    text = merge_prose(*sources) if len(kinds) == 1 else None
    return None if text is None else (text, False)


def _metadata(mine: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a cell of the course's that the student has: the course says what it is."""
    return {**_unmarked(mine), **new["metadata"]}


def _unmarked(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cell's metadata without what nbgrader and the course know it by: copies have that, too."""
    gone = ("nbgrader", "undertorch", "deletable", "editable") if role_of(cell) else ()
    return {key: value for key, value in cell["metadata"].items() if key not in gone}


def _has_comments(mine: Mapping[str, Any], stubs: Sequence[str]) -> bool:
    """Say whether a stub has notes of the student's in it: comments are no answer, and not nothing."""
    return all(text_of(mine) != text_of({"source": stub}) for stub in stubs)


def _begin(cell: Mapping[str, Any]) -> str:
    first = (text_of(cell) or "(empty)").splitlines()[0]
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
