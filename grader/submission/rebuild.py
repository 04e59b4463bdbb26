"""Reads a submitted notebook without trusting it, and rebuilds it from the released one.

From the student come the text of solution cells, and those imports and top-level definitions of
other cells that the solutions name. Tags, metadata, outputs, test cells and points cannot matter.
"""

from __future__ import annotations

import copy
import json
import os
import stat
import unicodedata
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.course.cells import Cell, Kind, as_code, own_cell, role_of, source_of
from grader.course.course import Chapter
from grader.files import as_utf8
from grader.submission.names import defines, names_in
from grader.submission.program import Program, slice_program

NOTEBOOK_LIMIT = 25 * 2**20
"""Largest notebook in bytes: far above any with pictures in it, far below what hurts."""

CELLS_LIMIT = 1000
"""Most cells; a chapter has some sixty."""

CELL_LIMIT = 64 * 2**10
"""Most characters of a code cell that is read: ten times the longest answer."""

CODE_LIMIT = 256 * 2**10
"""Most characters of all code cells. Reading code costs the grader's own process time."""


class Unreadable(Exception):
    """This file is no notebook that can be graded; the message says why, for an instructor."""


@dataclass(frozen=True)
class Rebuilt:
    """A released notebook with a student's text in it, the programs, and what was chosen.

    `notes` are sentences by exercise id; under "" those that belong to none.
    """

    notebook: dict[str, Any]
    programs: Mapping[str, Program]
    sources: Mapping[str, str]
    notes: Mapping[str, tuple[str, ...]]


def read_notebook(path: Path) -> dict[str, Any]:
    """Return a notebook of format 4 from a file that may be anything. Raises `Unreadable`."""
    text = read_regular(path).decode("utf-8", errors="replace").removeprefix("\ufeff")
    if not text.strip():
        raise Unreadable("the notebook is empty")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"the notebook is not JSON ({type(error).__name__})") from None
    if not isinstance(data, dict) or not isinstance(data.get("nbformat"), int):
        raise Unreadable("the file is JSON, but no notebook: it names no format version")
    return _as_version_4(data)


def read_regular(path: Path) -> bytes:
    """Return the bytes of an ordinary file of bearable size. Raises `Unreadable` for all else."""
    try:
        # neither follow a link nor wait for the other end of a pipe
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise Unreadable(f"there is no {path.name}") from None
    except OSError as error:
        kind = "a link" if path.is_symlink() else "not readable"
        raise Unreadable(f"{path.name} is {kind} ({error.strerror})") from None
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode):
        os.close(descriptor)
        raise Unreadable(f"{path.name} is no regular file")
    with os.fdopen(descriptor, "rb") as file:
        if state.st_nlink > 1:
            raise Unreadable(f"{path.name} is a hard link to another file")
        if state.st_size > NOTEBOOK_LIMIT:
            size = state.st_size / 2**20
            raise Unreadable(f"{path.name} has {size:.0f} MB, over {NOTEBOOK_LIMIT // 2**20} MB")
        return file.read(NOTEBOOK_LIMIT + 1)


def _as_version_4(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells of a notebook of format 3 or 4, and nothing else of it."""
    cells = data.get("cells") if data["nbformat"] == 4 else _cells_of_version_3(data)
    if not isinstance(cells, list):
        raise Unreadable(
            f"it has no cells as format 3 or 4 keeps them (it says {data['nbformat']})"
        )
    if len(cells) > CELLS_LIMIT:
        raise Unreadable(f"it has {len(cells)} cells, over {CELLS_LIMIT}")
    read = [_cell(number, cell) for number, cell in enumerate(cells, 1)]
    code = sum(len(cell["source"]) for cell in read if cell["cell_type"] == "code")
    if code > CODE_LIMIT:
        raise Unreadable(f"it has {code} characters of code, over {CODE_LIMIT}")
    return {"nbformat": 4, "cells": read}


def _cells_of_version_3(data: Mapping[str, Any]) -> list[Any] | None:
    sheets = data.get("worksheets")
    if data["nbformat"] != 3 or not isinstance(sheets, list):
        return None
    cells: list[Any] = []
    for sheet in sheets[:CELLS_LIMIT]:
        found = sheet.get("cells") if isinstance(sheet, Mapping) else None
        cells += found if isinstance(found, list) else []
    return cells


def _cell(number: int, cell: Any) -> dict[str, Any]:
    if not isinstance(cell, Mapping):
        raise Unreadable(f"its cell {number} is none")
    source = cell.get("source", cell.get("input", ""))  # format 3 says `input`
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise Unreadable(f"its cell {number} has no text")
    if cell.get("cell_type") == "code" and len(source) > CELL_LIMIT:
        raise Unreadable(
            f"its cell {number} has {len(source)} characters of code, over {CELL_LIMIT}"
        )
    metadata = cell.get("metadata")
    return {
        "cell_type": str(cell.get("cell_type")),
        "metadata": metadata if isinstance(metadata, dict) else {},
        "source": as_utf8(source),
    }


def rebuild(
    chapter: Chapter, submitted: Mapping[str, Any], released: Mapping[str, Any] | None = None
) -> Rebuilt:
    """Return the released notebook with the submitted text in its solution cells.

    `released` is that notebook as the gradebook knows it, hidden tests included; the chapter's
    own if left out.
    """
    released = copy.deepcopy(dict(released or chapter.notebook))
    notes: dict[str, list[str]] = {}
    places: dict[str, int] = {}
    for exercise in chapter.exercises:
        place, said = find_solution(exercise.id, submitted["cells"])
        if place is not None:
            places[exercise.id] = place
        if said:
            notes.setdefault(exercise.id, []).append(said)
    own = _own_cells(released["cells"], submitted["cells"], set(places.values()))
    merged = _merge(released["cells"], submitted["cells"], places, own)
    names = [exercise.id for exercise in chapter.exercises]
    code = [cell for _, cell in merged if cell is not None]
    programs = {name: slice_program(name, names, code) for name in names}
    _note_misplaced(names, code, programs, notes)
    used = {label for program in programs.values() for label, _ in program.parts}
    released["cells"] = [
        raw
        for raw, cell in merged
        if cell is None or cell.kind is not Kind.OWN or cell.label in used
    ]
    _note_disguises(code, used, notes)
    sources = {cell.label: cell.source for cell in code if cell.kind is Kind.SOLUTION}
    return Rebuilt(released, programs, sources, {key: tuple(said) for key, said in notes.items()})


def find_solution(exercise: str, cells: Sequence[Mapping[str, Any]]) -> tuple[int | None, str]:
    """Return where an exercise's solution cell is, and a note if it took a choice."""
    marked = [
        index
        for index, cell in enumerate(cells)
        if (role := role_of(cell)) and role.grade_id == exercise and not role.is_grade
    ]
    if len(marked) > 1:
        return marked[-1], f"Your notebook has {len(marked)} cells for this; the last one counts."
    if marked:
        return marked[0], ""
    defining = [
        index
        for index, cell in enumerate(cells)
        if cell["cell_type"] == "code" and defines(cell["source"], exercise)
    ]
    if defining:
        return defining[-1], "The solution cell was missing; the last cell that defines it counts."
    return None, "The solution cell was missing from your notebook."


def _own_cells(
    released: Sequence[Mapping[str, Any]],
    submitted: Sequence[Mapping[str, Any]],
    taken: set[int],
) -> list[int]:
    """Return the places of code cells that the student added or changed."""
    known = {source_of(cell).strip() for cell in released}
    return [
        index
        for index, cell in enumerate(submitted)
        if cell["cell_type"] == "code"
        and index not in taken
        and cell["source"].strip() not in known
        and role_of(cell) is None
    ]


def _merge(
    released: Sequence[dict[str, Any]],
    submitted: Sequence[Mapping[str, Any]],
    places: Mapping[str, int],
    own: Sequence[int],
) -> list[tuple[dict[str, Any], Cell | None]]:
    """Return the rebuilt notebook's cells in order, with what each means as code, if anything.

    A cell of the student's own comes before the solution cell that followed it in the submission.
    """
    merged: list[tuple[dict[str, Any], Cell | None]] = []
    left = list(own)
    for number, raw in enumerate(released):
        role = role_of(raw)
        if role and role.is_solution and raw["cell_type"] == "code":
            place = places.get(role.grade_id, -1)
            while left and left[0] < place:
                merged.append(_own(left.pop(0), submitted))
            if role.grade_id in places:
                raw["source"] = submitted[place]["source"]
        merged.append((raw, as_code(number, raw)))
    return merged + [_own(index, submitted) for index in left]


def _own(index: int, submitted: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], Cell | None]:
    raw = own_cell(index, submitted[index]["source"])
    return raw, as_code(index, raw)


def _note_misplaced(
    names: Sequence[str],
    cells: Sequence[Cell],
    programs: Mapping[str, Program],
    notes: dict[str, list[str]],
) -> None:
    """Tell a student who wrote an answer outside its cell."""
    for name in names:
        if any(cell.kind is Kind.OWN and defines(cell.source, name) for cell in cells):
            notes.setdefault(name, []).append(
                f"Another cell defines `{name}`, too. Only the solution cell counts."
            )


_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of text, as listed by Boucher and Anderson, "Trojan Source"."""


_NAMED, _LONGEST_NAME, _MOST_SAID = 3, 80, 20
"""How many such names of a cell are told, how much of each, and of how many sentences that are enough:
they stand beside every exercise, on the page, in the record and in the gradebook."""


def _note_disguises(cells: Sequence[Cell], used: Set[str], notes: dict[str, list[str]]) -> None:
    """Say which cells look to a reader like something else than they run."""
    for cell in cells:
        if cell.kind is Kind.GIVEN or (cell.kind is Kind.OWN and cell.label not in used):
            continue
        where = "Y" + cell.label[1:] if cell.kind is Kind.OWN else f"The cell of `{cell.label}`"
        said = notes.setdefault("", [])
        if len(said) > _MOST_SAID:
            return
        if _DIRECTIONS & set(cell.source):
            said.append(f"{where} turns the direction of text: it reads otherwise than it runs.")
        mixed = [
            name[:_LONGEST_NAME]
            for name in sorted(names_in(cell.source))
            if len({"LATIN", "CYRILLIC"} & _alphabets(name)) > 1
        ]
        said += [f"{where} has a name that mixes alphabets: `{name}`." for name in mixed[:_NAMED]]
        if len(mixed) > _NAMED:
            said.append(f"{where} has {len(mixed) - _NAMED} more such names.")


def _alphabets(name: str) -> set[str]:
    return {unicodedata.name(letter, "?").split()[0] for letter in name}
