"""Tests of Undertorch itself."""

from contextlib import suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
"""The repository, which is a course."""


def begun_since(before: set[psutil.Process]) -> set[psutil.Process]:
    """Return our descendants that live, but for those under the children `before`.

    A browser, left open for the next test of this process, begins and ends processes as it likes.
    """
    found = set()
    for child in set(psutil.Process().children()) - before:
        with suppress(psutil.NoSuchProcess):
            found |= {child, *child.children(recursive=True)}
    return {process for process in found if _lives(process)}


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False
