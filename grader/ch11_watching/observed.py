"""What checks of the observer's contract share: the words for what an observer did."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from grader import Mismatch, assert_equal, assert_holds, compared


def assert_undisturbed(found: Mapping[str, Any]) -> None:
    """Fail unless a run with the observer is the one without, and nothing was left behind."""
    assert_equal(
        found["differs"][:3], [], "The run is not the one that would have been without you."
    )
    assert_equal(found["left"][:3], [], "Something is left behind.")


def assert_reads(names: list[str], most: int, where: str) -> None:
    """Fail if there were more than `most` reads; `names` are those that were."""
    often = {name for name, count in Counter(names).items() if count > most}
    compared(sorted(often or set(names)))  # how it reads once is its own
    if len(names) > most:
        rows = ("allowed", f"{most} {where}"), ("got", f"{len(names)}: {', '.join(names[:8])}")
        raise Mismatch("Values are read too often.", rows)


def assert_nothing_kept(alive: list[int], graphs: int) -> None:
    """Fail if a graph is alive, or more bytes after many steps than after few."""
    assert_equal(graphs, 0, "How many of the run's graphs are still alive.")
    few, many = alive
    assert_holds(
        many <= few,
        "The longer you watch, the more memory you keep.",
        ("alive after few steps", f"{few} bytes"),
        ("alive after many", f"{many} bytes"),
    )
