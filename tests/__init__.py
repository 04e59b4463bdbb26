"""Tests of Undertorch itself."""

import importlib.util
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType

import psutil

ROOT = Path(__file__).resolve().parents[1]
"""The repository, which is a course."""


@cache
def module_at(path: Path) -> ModuleType:
    """A script outside of every package, loaded as mkdocs loads a hook: by its path."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
