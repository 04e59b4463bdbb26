"""The course's cells in two versions, and where each is in the student's notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.course.cells import grade_id_of, is_solution_cell
from grader.student.counterparts import counterparts, text_of
from grader.submission.rebuild import find_solution

Cells = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Slot:
    """A cell of the course's: how it was in the old version and how it is in the new, if it is."""

    base: dict[str, Any] | None
    new: dict[str, Any] | None

    @property
    def one(self) -> dict[str, Any]:
        """Either of the two."""
        found = self.new or self.base
        assert found is not None
        return found

    def is_given(self, cell: Mapping[str, Any]) -> bool:
        """Say whether a cell has the course's text, old or new."""
        return any(same(cell, version) for version in (self.base, self.new) if version)

    @property
    def changed(self) -> bool:
        """Whether the course's text is another than it was, as far as is known."""
        return self.base is None or self.new is None or not same(self.base, self.new)


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Say whether two cells are of one kind and say the same."""
    return text_of(one) == text_of(other) and bool(one["cell_type"] == other["cell_type"])


def slots_of(base: Cells, new: Cells) -> list[Slot]:
    """Return a slot for each cell of the new version, in order; then those of cells it dropped."""
    now = counterparts(dict(enumerate(base)), dict(enumerate(new)), ids_hold=False)
    was = {after: before for before, after in now.items()}
    slots = [Slot(base[was[n]] if n in was else None, cell) for n, cell in enumerate(new)]
    return slots + [Slot(cell, None) for b, cell in enumerate(base) if b not in now]


def find_places(slots: Sequence[Slot], mine: Cells, *, knows_old: bool) -> dict[int, int]:
    """Return for the number of a slot the place of its cell in the student's notebook, where it is.

    One cell can hold two answers. `knows_old`: the old version is at hand.
    """
    places = _find_answers(slots, mine)
    plain = {i: slot for i, slot in enumerate(slots) if not is_solution_cell(slot.one)}

    def rest() -> dict[int, dict[str, Any]]:
        taken = set(places.values())
        return {i: cell for i, cell in enumerate(mine) if i not in taken}

    old = {i: slot.base for i, slot in plain.items() if slot.base}
    # an old editor drops all ids, and the next one makes others
    ids_hold = bool({c.get("id", "") for c in old.values()} & {str(c.get("id")) for c in mine})
    places |= counterparts(old, rest(), ids_hold=ids_hold)
    new = {i: slot.new for i, slot in plain.items() if slot.new and i not in places}
    for number, place in counterparts(new, rest(), ids_hold=False).items():
        # an own cell that is merely like a new one of the course's stays the student's own
        if not knows_old or same(mine[place], new[number]):
            places[number] = place
    return places


def _find_answers(slots: Sequence[Slot], mine: Cells) -> dict[int, int]:
    """Return where the solution cells are; grading looks for them in the same way."""
    plain = [slot for slot in slots if not is_solution_cell(slot.one)]
    places: dict[int, int] = {}
    for number, slot in enumerate(slots):
        if not is_solution_cell(slot.one):
            continue
        name = grade_id_of(slot.one) or ""
        place, _ = find_solution(name, mine)
        if place is None:
            continue
        marked = grade_id_of(mine[place]) == name
        # a cell without the mark may be the answer all the same, as it is when it is graded
        if marked or (slot.new and not any(one.is_given(mine[place]) for one in plain)):
            places[number] = place
    return places
