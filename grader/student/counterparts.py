"""Which cell of one notebook is which of another's: an older version's, or a student's copy's.

Ids alone do not say it. A chapter's cells are numbered within their exercise, so one that is put in
renames all that follow; and old editors lose ids.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from rapidfuzz import fuzz

from grader.course.cells import grade_id_of, role_of
from grader.student.lines import lines

Cell = Mapping[str, Any]

ALIKE = 60.0
"""From how many percent on two texts may be versions of one: `# Title` and `# Better title` are 67."""

_SAME_ID = 10.0
"""What one id for two texts counts for, in percent."""

_ENOUGH = 20
"""How many characters whole lines must share to say anything: `else:` stands everywhere."""


def text_of(cell: Cell) -> str:
    """Return what a cell says: white space at the ends, of lines too, is left out."""
    return "\n".join(line.rstrip() for line in lines(cell["source"])).strip()


def counterparts(
    old: Mapping[int, Cell], new: Mapping[int, Cell], *, ids_hold: bool
) -> dict[int, int]:
    """Return for places in `old` the place in `new` where the same cell is.

    Graded cells go by their name. `ids_hold`: a cell that kept its id is the same, whatever it says,
    and one with an id that `old` does not know is another. Else cells go by what they say.
    """
    left, right = dict(old), dict(new)
    found: dict[int, int] = {}

    def pair(one: int, other: int) -> None:
        found[one] = other
        del left[one], right[other]

    for key in (_name_and_text, grade_id_of, _id_and_text, _text, *([_id] if ids_hold else [])):
        for one, other in _equal(key, left, right):
            pair(one, other)
    free = {i: cell for i, cell in right.items() if not (ids_hold and _id(cell))}
    for one, other in _alike(left, free):
        if one in left and other in right:
            pair(one, other)
    return found


def _equal(
    key: Callable[[Cell], Hashable], left: Mapping[int, Cell], right: Mapping[int, Cell]
) -> list[tuple[int, int]]:
    """Return the places of cells with one key, in order. A key of None is none."""
    places: dict[Hashable, list[int]] = {None: []}
    for place, cell in right.items():
        places.setdefault(key(cell), []).append(place)
    places[None] = []
    waiting = ((place, places.get(key(cell))) for place, cell in left.items())
    return [(place, among.pop(0)) for place, among in waiting if among]


def _alike(left: Mapping[int, Cell], right: Mapping[int, Cell]) -> list[tuple[int, int]]:
    """Return places of cells that say nearly the same, the most alike first."""
    scored = []
    for place, cell in left.items():
        for other, candidate in right.items():
            if cell["cell_type"] != candidate["cell_type"] or role_of(cell) or role_of(candidate):
                continue
            score = _likeness(text_of(cell), text_of(candidate))
            if _id(cell) is not None and _id(cell) == _id(candidate):
                score += _SAME_ID
            if score >= ALIKE:
                scored.append((-score, place, other))
    return [(place, other) for _, place, other in sorted(scored)]


def _likeness(one: str, other: str) -> float:
    """Return from 0 to 100 how alike two texts are; a longer one that has all of the other is, too."""
    shared = set(one.split("\n")) & set(other.split("\n"))
    size = sum(map(len, shared))
    contained = 100 * size / min(len(one), len(other)) if size >= _ENOUGH else 0.0
    return max(fuzz.ratio(one, other), contained)


def _text(cell: Cell) -> Hashable:
    return (cell["cell_type"], text_of(cell)) if text_of(cell) else None


def _id(cell: Cell) -> str | None:
    found = cell.get("id")
    return found if isinstance(found, str) else None


def _id_and_text(cell: Cell) -> Hashable:
    return (_id(cell), _text(cell)) if _id(cell) and _text(cell) else None


def _name_and_text(cell: Cell) -> Hashable:
    return (grade_id_of(cell), _text(cell)) if grade_id_of(cell) else None
