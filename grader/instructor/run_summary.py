"""Tells what a run came to: a summary at its end, and a table of what a regrade changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from grader.nbgrader.naming import names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.nbgrader.parallel import Tally
    from grader.nbgrader.regrade import Change

BY_HAND = "A score given by hand stands; look again whether it fits"
"""What is said of students whose submission was judged anew, and a person had scored some of it."""


def summary(tally: Tally, chapter: str) -> str:
    """Return what became of a run in a few lines."""
    unscored = len(tally.unscored)
    lines = [
        f"{tally.graded} graded, {unscored} of them need{'s' * (unscored == 1)} review; "
        f"{tally.skipped} were graded before."
    ]
    if tally.unscored:
        lines.append(f"No score until a person gives one: {names(tally.unscored)}.")
    if tally.noted:
        lines.append(f"A score, and a note for a person: {names(tally.noted)}.")
    if tally.lost:
        said = [f"{name} {_points(*pair)}" for name, pair in tally.lost.items()]
        lines.append(f"Fewer points than before: {names(said)}.")
    if tally.by_hand:
        lines.append(f"{BY_HAND}: {names(tally.by_hand)}.")
    if tally.earlier:
        said = [f"{name} {_instead(*pair)}" for name, pair in tally.earlier.items()]
        lines.append(f"Handed in again, but the one before is the best: {names(said)}.")
    if tally.first:
        lines.append(f"Handed in again, but the first counts: {names(tally.first)}.")
    if tally.strangers:
        lines.append(
            f"New in the gradebook, on no roster: {names(tally.strangers)}. "
            "Where a folder's name was a slip: undertorch course drop STUDENT"
        )
    if tally.dropped:
        lines.append(f"Dropped from the course, not graded: {names(tally.dropped)}.")
    if tally.signal:
        lines.append("Interrupted.")
    if tally.stopped:
        lines.append(f"Stopped: {tally.stopped}")
    lines += [f"Not graded: {name}: {why}." for name, why in sorted(tally.troubles.items())]
    if tally.left:
        lines.append(f"{tally.left} are not graded. To go on: undertorch grade {chapter}")
    return "\n".join(lines)


def _points(before: float | None, after: float | None) -> str:
    return " → ".join("none" if one is None else f"{one:g}" for one in (before, after))


def _instead(before: float | None, after: float | None) -> str:
    first, second = ("no score" if one is None else f"{one:g}" for one in (before, after))
    return f"{first} (the new one: {second})"


def changes_table(changes: Sequence[Change]) -> Table:
    """Return what changed, exercise by exercise: from what to what, why, and for whom."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for change in changes:
        before, after = (
            one.points if one.scored else None for one in (change.before, change.after)
        )
        points = _points(before, after)
        alike.setdefault((change.exercise, points, "; ".join(change.why)), []).append(
            change.student
        )
    shown = Table(pad_edge=False)
    for name in ("exercise", "points", "why", "students"):
        shown.add_column(name, no_wrap=name in ("exercise", "points"))
    for (exercise, points, why), students in sorted(alike.items()):
        who = f"{len(students)}: {names(students, 8)}"
        shown.add_row(exercise, points, Text(why), Text(who))
    return shown
