"""Shows how far a run has come."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.nbgrader.parallel import Tally

_T = TypeVar("_T")


def track(console: Console) -> Callable[[Sequence[_T], str], Iterable[_T]]:
    """Give a function that passes things on and shows how many are done, on a terminal alone."""

    def pass_on(things: Sequence[_T], what: str) -> Iterator[_T]:
        progress = Progress(
            TextColumn(what),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        with progress:
            yield from progress.track(things)

    return pass_on


SPEAKS_EVERY = 30.0
"""Seconds after which a run that nobody watches says again how far it is, if it got on."""


@contextmanager
def show_progress(console: Console) -> Iterator[Callable[[Tally], None]]:
    """Give a function that shows a tally: graded, for review, per second, time left.

    Where the console is no terminal it goes to stderr, a line at times.
    """
    progress = Progress(
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("{task.fields[counts]}"),
        TimeRemainingColumn(),
        console=console,
        auto_refresh=False,  # its thread would be in the way of forks
        disable=not console.is_terminal,
    )
    task = progress.add_task("", total=None, counts="starting")
    start = spoke = time.monotonic()

    def report(tally: Tally) -> None:
        nonlocal spoke
        speed = tally.graded / max(time.monotonic() - start, 1e-9)
        counts = (
            f"{tally.graded} graded, {len(tally.unscored)} for review, {len(tally.troubles)} failed, "
            f"{tally.skipped} skipped, {speed:.1f}/s"
        )
        done = tally.graded + tally.skipped + len(tally.troubles)
        progress.update(task, total=tally.total, completed=done, counts=counts, refresh=True)
        if not console.is_terminal and time.monotonic() - spoke >= SPEAKS_EVERY:
            spoke = time.monotonic()
            sys.stderr.write(f"{done} of {tally.total}: {counts}\n")
            sys.stderr.flush()

    with progress:
        yield report
