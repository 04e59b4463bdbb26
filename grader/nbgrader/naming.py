"""Many students in one sentence."""

from __future__ import annotations

from collections.abc import Iterable

SHOWN = 20
"""Of more students the first ones are named, and the rest counted."""


def names(students: Iterable[str], shown: int = SHOWN) -> str:
    """Return ids in order, the first ones if they are many."""
    known = sorted(students)
    more = f" and {len(known) - shown} more" if len(known) > shown else ""
    return ", ".join(known[:shown]) + more
