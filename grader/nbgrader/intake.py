"""What is done with a submission's folder before nbgrader looks into it.

Links, pipes, devices, hard links, oversize and deeply nested files go into quarantine, in the
evidence folder: nbgrader would follow, copy or wait for them. An unreadable timestamp goes there
too, because nbgrader stops at it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from nbgrader.utils import parse_utc

FILE_LIMIT = 25 * 2**20
"""Largest file beside the notebook in bytes; a chapter needs none at all."""

FILES_LIMIT = 200
"""Most files and folders of a submission: nbgrader copies each twice."""

BYTES_LIMIT = 100 * 2**20
"""Most bytes of all files beside the notebook."""

TIME_LIMIT = 100
"""Largest timestamp in bytes; nbgrader writes 30, and reads a date for as long as there is text."""

DEPTH_LIMIT = 8
"""Deepest folder."""

NAMED, NAME_SHOWN = 5, 100
"""How many files that were put aside are named, and how much of each name is shown: what is said here
stands beside every exercise, on the page, in the record and in the gradebook."""


def take_in(folder: Path, quarantine: Path, notebook: str) -> list[str]:
    """Clear a submission's folder of what must not be copied; return what was done, in words.

    `notebook` is the name of the notebook that is to be graded. It stays where it is, whatever
    it is: it is read with care later.
    """
    try:
        return _clear(folder, quarantine, notebook)
    except OSError as error:
        _move(folder, quarantine)
        folder.mkdir()
        return [f"The submission could not be looked through and was put aside ({error.strerror})."]


def _clear(folder: Path, quarantine: Path, notebook: str) -> list[str]:
    said: list[str] = []
    for place in (folder.parent, folder):
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            target = _move(place, quarantine)
            folder.mkdir(parents=True)
            return [f"The submission was no folder, or a link to one; it lies in {target.name}."]
    suspects = list(_suspects(folder, notebook))
    for path, why in suspects:
        _move(path, quarantine)
        if len(said) < NAMED:
            said.append(f"{_shown(path.relative_to(folder))} was put aside: {why}.")
    if len(suspects) > NAMED:
        said.append(f"{len(suspects) - NAMED} more were put aside for such reasons.")
    said += _thin_out(folder, quarantine, notebook)
    stamp = folder / "timestamp.txt"
    if stamp.is_file() and not _is_time(stamp):
        _move(stamp, quarantine)
        said.append("timestamp.txt held no time: when it was handed in is unknown.")
    return said


def _shown(path: Path) -> str:
    """Return the end of a path, which says most, as text."""
    name = printable(str(path))
    return name if len(name) <= NAME_SHOWN else f"…{name[-NAME_SHOWN:]}"


def printable(name: str) -> str:
    """Return a file's name as text that neither terminals nor Markdown obey."""
    return "".join(letter if letter.isprintable() else "�" for letter in name).replace("`", "'")


def _thin_out(folder: Path, quarantine: Path, notebook: str) -> list[str]:
    """Put aside what is beyond a number of files and folders, and of bytes."""
    paths = [path for path in sorted(folder.rglob("*")) if path != folder / notebook]
    kept, room, moved = 0, BYTES_LIMIT, 0
    for path in paths:
        if not path.exists():
            continue  # its folder was put aside
        kept += 1
        size = path.stat().st_size if path.is_file() else 0
        if kept > FILES_LIMIT or size > room:
            _move(path, quarantine)
            moved += 1
        else:
            room -= size
    if not moved:
        return []
    limits = f"{FILES_LIMIT} files and folders, {BYTES_LIMIT // 2**20} MB"
    return [f"{moved} files and folders were put aside: a submission may have {limits}."]


def _suspects(folder: Path, notebook: str) -> Iterator[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    for parent, folders, files in os.walk(folder):
        here = Path(parent)
        if len(here.relative_to(folder).parts) >= DEPTH_LIMIT:
            found.append((here, f"it lies more than {DEPTH_LIMIT} folders deep"))
            folders.clear()
            continue
        for name in list(folders + files):
            path = here / name
            if path == folder / notebook:
                why = "it is a folder" if name in folders and not path.is_symlink() else ""
            else:
                why = _objection(path)
            if path == (folder / notebook).with_suffix(".html"):
                why = "feedback is written under that name"
            if why:
                found.append((path, why))
                if name in folders:
                    folders.remove(name)  # it goes with all that is in it
    yield from found


def _objection(path: Path) -> str:
    state = path.lstat()
    if not path.name.isprintable():
        return "its name holds characters that cannot be printed"
    if stat.S_ISLNK(state.st_mode):
        return "it is a link"
    if stat.S_ISDIR(state.st_mode):
        return ""
    if not stat.S_ISREG(state.st_mode):
        return "it is no regular file"
    if state.st_nlink > 1:
        return "it is a hard link to another file"
    if not os.access(path, os.R_OK):
        return "it cannot be read"
    if state.st_size > FILE_LIMIT:
        return f"it has {state.st_size / 2**20:.0f} MB"
    return ""


def _is_time(path: Path) -> bool:
    if path.stat().st_size > TIME_LIMIT:
        return False
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
    if target.exists() or target.is_symlink():
        target = quarantine / f"{secrets.token_hex(6)}-{path.name[:40]}"
    try:
        os.rename(path, target)
    except OSError:
        if not path.is_symlink() and path.is_file():
            shutil.move(path, target)
        else:
            raise
    return target
