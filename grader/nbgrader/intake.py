"""What is done with a submission's folder before nbgrader looks into it.

Links, pipes, devices, hard links, oversize and deeply nested files go into quarantine, in the
evidence folder: nbgrader would follow, copy or wait for them. An unreadable timestamp goes there
too, because nbgrader stops at it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from nbgrader.utils import parse_utc

FILE_LIMIT = 25 * 2**20
"""Largest file beside the notebook in bytes; a chapter needs none at all."""

FILES_LIMIT = 200
"""Most files of a submission: nbgrader copies each twice."""

DEPTH_LIMIT = 8
"""Deepest folder."""


def take_in(folder: Path, quarantine: Path, notebook: str) -> list[str]:
    """Clear a submission's folder of what must not be copied; return what was done, in words.

    `notebook` is the name of the notebook that is to be graded. It stays where it is, whatever
    it is: it is read with care later.
    """
    said = []
    if folder.is_symlink():
        target = _move(folder, quarantine)
        folder.mkdir()
        return [f"The submission was a link to another folder; it lies in {target}."]
    count = 0
    for path, why in _suspects(folder):
        if path != folder / notebook:
            _move(path, quarantine)
            said.append(f"{path.relative_to(folder)} was put aside: {why}.")
    for path in sorted(folder.rglob("*")):
        count += path.is_file()
        if count > FILES_LIMIT and path.is_file() and path.name != notebook:
            _move(path, quarantine)
    if count > FILES_LIMIT:
        said.append(
            f"{count} files were submitted; those after the first {FILES_LIMIT} were put aside."
        )
    stamp = folder / "timestamp.txt"
    if stamp.is_file() and not _is_time(stamp):
        _move(stamp, quarantine)
        said.append("timestamp.txt held no time: when it was handed in is unknown.")
    return said


def _suspects(folder: Path) -> Iterator[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    for parent, folders, files in os.walk(folder):
        here = Path(parent)
        if len(here.relative_to(folder).parts) >= DEPTH_LIMIT:
            found.append((here, f"it lies more than {DEPTH_LIMIT} folders deep"))
            folders.clear()
            continue
        for name in [*folders, *files]:
            why = _objection(here / name)
            if why:
                found.append((here / name, why))
    yield from found


def _objection(path: Path) -> str:
    state = path.lstat()
    if stat.S_ISLNK(state.st_mode):
        return "it is a link"
    if stat.S_ISDIR(state.st_mode):
        return ""
    if not stat.S_ISREG(state.st_mode):
        return "it is no regular file"
    if state.st_nlink > 1:
        return "it is a hard link to another file"
    if state.st_size > FILE_LIMIT:
        return f"it has {state.st_size / 2**20:.0f} MB"
    return ""


def _is_time(path: Path) -> bool:
    try:
        # as nbgrader's CourseDirectory reads it
        parse_utc(path.read_text(encoding="utf-8").strip())
    except Exception:
        return False
    return True


def _move(path: Path, quarantine: Path) -> Path:
    """Move a file, a link or a folder as it is; nothing is opened or followed."""
    quarantine.mkdir(parents=True, exist_ok=True)
    os.chmod(quarantine, 0o700)
    target = quarantine / path.name
    number = 1
    while target.exists() or target.is_symlink():
        target = quarantine / f"{path.name}.{number}"
        number += 1
    try:
        os.rename(path, target)
    except OSError:
        if not path.is_symlink() and path.is_file():
            shutil.move(path, target)
        else:
            raise
    return target
