"""Pairs of similar answers as a table for a terminal, and as JSON data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from grader.instructor.similar import Pair

DETAILED = 25
"""Of how many pairs a page shows both texts."""


def pairs_table(pairs: Sequence[Pair]) -> Table:
    """Return a row for each pair: students, bits, exercises."""
    shown = Table(pad_edge=False)
    shown.add_column("students")
    shown.add_column("bits", justify="right")
    shown.add_column("exercises, and the share of tokens in the same order")
    for pair in pairs:
        exercises = ", ".join(
            f"{one.exercise} {one.ratio:.0%}{' both failed' if one.same_failure else ''}"
            for one in pair.shared
        )
        shown.add_row(Text(" · ".join(pair.students)), f"{pair.bits:.0f}", Text(exercises))
    return shown


def as_data(pairs: Sequence[Pair], crowds: Mapping[str, list[list[str]]]) -> dict[str, Any]:
    """Return pairs and crowds as JSON data."""
    return {
        "pairs": [
            {
                "students": pair.students,
                "bits": round(pair.bits, 1),
                "exercises": [
                    {
                        "exercise": one.exercise,
                        "bits": round(one.bits, 1),
                        "ratio": round(one.ratio, 3),
                        "both_failed": one.same_failure,
                    }
                    for one in pair.shared
                ],
            }
            for pair in pairs
        ],
        "crowds": dict(crowds),
    }
