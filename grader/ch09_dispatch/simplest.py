"""Comparing many plain answers at once, and showing the simplest call that is answered wrongly."""

from __future__ import annotations

from collections.abc import Sequence

from grader import Mismatch, compared


def assert_each(got: Sequence[object], expected: Sequence[object], calls: Sequence[str]) -> None:
    """Fail unless `got` has what is expected for each call; show the shortest call that differs."""
    compared(got, expected)
    wrong = [number for number, right in enumerate(expected) if _differ(got[number], right)]
    if not wrong:
        return
    first = min(wrong, key=lambda number: len(calls[number]))
    raise Mismatch(
        f"{len(wrong)} of {len(expected)} answers differ. The simplest:",
        (
            ("call", calls[first]),
            ("expected", repr(expected[first])),
            ("got", repr(got[first])[:200]),
        ),
    )


def _differ(got: object, right: object) -> bool:
    """A list is as good as a tuple; True is not as good as 1."""
    if isinstance(right, tuple | list):
        if not isinstance(got, tuple | list) or len(got) != len(right):
            return True
        return any(map(_differ, got, right))
    return type(got) is not type(right) or got != right
