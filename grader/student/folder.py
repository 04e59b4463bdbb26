"""A student's folder, `my/`: where its notebooks are, and how a file in it is replaced.

Nothing in it is overwritten without a copy under `kept/`.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from grader.course.course import Chapter, CourseError
from grader.student.journal import STATE

NAME = "my"
"""What `undertorch learn` calls the folder unless it is told another name."""


@dataclass(frozen=True)
class Folder:
    """A student's folder. `.undertorch/` in it is for the commands, `kept/` for old texts."""

    root: Path

    def notebook(self, chapter: Chapter) -> Path:
        """Where a chapter's notebook is, or would be."""
        return self.root / chapter.id / chapter.released.name

    def base(self, chapter: Chapter) -> Path:
        """The released notebook that the student's one was last filled or updated from."""
        return self.root / STATE / "base" / chapter.id / chapter.released.name

    def keep(self, chapter: str, stem: str, ending: str, content: bytes) -> Path:
        """Write a copy of something that is about to change; return where it is."""
        target = self.root / "kept" / chapter
        target.mkdir(parents=True, exist_ok=True)
        stamp = time.strftime("%Y-%m-%d-%H%M%S")
        for number in count(1):
            again = f"-{number}" if number > 1 else ""
            path = target / f"{stem}-{stamp}{again}{ending}"
            try:
                with path.open("xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            except FileExistsError:
                continue
            return path
        raise AssertionError("count() has no end")


def find_folder(start: Path | None = None) -> Folder:
    """Return the student's folder that `start` (the working directory) lies in or holds as `my`.

    Raises `CourseError` if there is none.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        for candidate in (folder, folder / NAME):
            if (candidate / STATE).is_dir():
                return Folder(candidate)
        if any((folder / NAME).glob("*/*.ipynb")):  # filled before there was a journal
            return Folder(folder / NAME)
    raise CourseError(
        f"No folder of yours in {here} or above it. `undertorch learn` makes one, called {NAME}/. "
        "If yours lies elsewhere, go there first, or name a notebook."
    )


def display_path(path: Path) -> str:
    """Return a path as one would type it here."""
    try:
        return str(path.resolve().relative_to(Path.cwd().resolve()))
    except ValueError:
        return str(path)
