"""Three-way merge of lines: what two sides made of one text, put together. Text goes in, text comes out.

The idea is diff3's (Khanna, Kunal, Pierce, "A formal investigation of diff3", 2007), but edits of
neighbouring lines do not clash here: cells are short, and a notebook's edits are small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from grader.submission.program import lines_of


@dataclass(frozen=True)
class Clash:
    """Lines that each side made from the same place. `added`: the base has none there."""

    mine: tuple[str, ...]
    new: tuple[str, ...]
    added: bool


def lines(text: str) -> list[str]:
    """Return a cell's lines without blank ones at its ends; whichever way lines end, none keeps it."""
    found = lines_of(text)
    while found and not found[-1].strip():
        found.pop()
    while found and not found[0].strip():
        found.pop(0)
    return found


def merge_lines(base: str, mine: str, new: str) -> list[str | Clash]:
    """Return the merged lines in order, and clashes where both changed the same ones.

    White space at the end of a line is no change.
    """
    texts = [lines(text) for text in (base, mine, new)]
    agreed = _agreed(*texts)
    ours, theirs = (_edits(texts[0], side) for side in texts[1:])
    merged: list[str | Clash] = []
    at = 0
    for start, stop, group in _groups(ours, theirs):
        left = _side(agreed, start, stop, [edit for edit in ours if edit in group])
        right = _side(agreed, start, stop, [edit for edit in theirs if edit in group])
        merged += agreed[at:start]
        if all(edit in theirs for edit in group):
            merged += right
        elif all(edit in ours for edit in group):
            merged += left
        else:
            merged += _together(left, right, start == stop)
        at = stop
    return merged + agreed[at:]


@dataclass(frozen=True, eq=False)  # each is itself: both sides may make the same edit
class _Edit:
    """One side has `lines` where the base has those from `start` to before `stop`."""

    start: int
    stop: int
    lines: tuple[str, ...]


def _keys(text: Sequence[str]) -> list[str]:
    return [line.rstrip() for line in text]


def _matcher(base: Sequence[str], side: Sequence[str]) -> SequenceMatcher[str]:
    return SequenceMatcher(None, _keys(base), _keys(side), autojunk=False)


def _edits(base: Sequence[str], side: Sequence[str]) -> list[_Edit]:
    return [
        _Edit(start, stop, tuple(side[first:last]))
        for tag, start, stop, first, last in _matcher(base, side).get_opcodes()
        if tag != "equal"
    ]


def _agreed(base: list[str], mine: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the base's lines with the white space that the last to touch it gave them."""
    agreed = list(base)
    for side in (new, mine):
        for start, first, size in _matcher(base, side).get_matching_blocks():
            for offset in range(size):
                if side[first + offset] != base[start + offset]:
                    agreed[start + offset] = side[first + offset]
    return agreed


def _groups(
    ours: Sequence[_Edit], theirs: Sequence[_Edit]
) -> Iterator[tuple[int, int, list[_Edit]]]:
    """Yield the edits that touch the same lines together, with the lines of the base they span."""
    pending = sorted([*ours, *theirs], key=lambda edit: (edit.start, edit.stop))
    while pending:
        group = [pending.pop(0)]
        start, stop = group[0].start, group[0].stop
        while pending and (
            pending[0].start < stop or start == stop == pending[0].start == pending[0].stop
        ):
            group.append(pending.pop(0))
            stop = max(stop, group[-1].stop)
        yield start, stop, group


def _side(base: Sequence[str], start: int, stop: int, edits: Sequence[_Edit]) -> list[str]:
    """Return what one side made of the base's lines from `start` to before `stop`."""
    made: list[str] = []
    for edit in edits:
        made += [*base[start : edit.start], *edit.lines]
        start = edit.stop
    return made + list(base[start:stop])


def _together(mine: Sequence[str], new: Sequence[str], added: bool) -> list[str | Clash]:
    """Return what two versions of the same lines have in common, and between it where they clash."""
    ours, theirs = _keys(mine), _keys(new)
    first = 0
    while first < min(len(ours), len(theirs)) and ours[first] == theirs[first]:
        first += 1
    while added and first and not ours[first - 1]:
        first -= 1  # an empty line parts what follows from what stands above, on either side
    last = 0
    while last < min(len(ours), len(theirs)) - first and ours[-1 - last] == theirs[-1 - last]:
        last += 1
    left, right = mine[first : len(mine) - last], new[first : len(new) - last]
    between: list[str | Clash] = [Clash(tuple(left), tuple(right), added)]
    if (added and not (left and right)) or not (left or right):
        between = [*left, *right]
    return [*mine[:first], *between, *mine[len(mine) - last :]]
