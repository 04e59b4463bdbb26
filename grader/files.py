"""Text that any file can hold or any terminal show, files that are written whole or not at all, and
folders whose depth somebody else chose.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

_ORDERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters but for tab and line feed, what turns the direction of text, ends of lines that
are none to us, halves of surrogate pairs."""


def as_utf8(text: str) -> str:
    """Return text with `?` for each half of a surrogate pair: it has no UTF-8, so no file holds it."""
    return text.encode("utf-8", "replace").decode("utf-8")


def inert(text: str, sign: str = "\N{REPLACEMENT CHARACTER}") -> str:
    """Return text with a sign in the place of each character that a terminal or a page would obey, not show."""
    return _ORDERS.sub(sign, text)


def files_below(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the regular files below a folder, links apart, however deep they lie.

    A path that the system finds too long is left out.
    """
    left = [os.fspath(folder)]
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        yield entry
        except OSError:
            continue


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it. `shutil.rmtree` gives up a thousand folders deep."""
    numbers = count()
    while found := [entry for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]:
        for entry in found:
            for inner in os.scandir(entry.path):
                if inner.is_dir(follow_symlinks=False):  # one step up, so that no path gets long
                    os.rename(inner.path, folder / f".removed.{os.getpid()}.{next(numbers)}")
                else:
                    os.unlink(inner.path)
            os.rmdir(entry.path)
    for entry in os.scandir(folder):
        os.unlink(entry.path)
    os.rmdir(folder)


def write_atomically(
    path: Path, content: bytes | str, *, private: bool = False, durable: bool = True
) -> None:
    """Put `content` in the place of a file at one stroke: old or new, never half of it.

    Text is written as UTF-8. A file that is there keeps its mode, one behind a link is written where
    it lies. `private` files can be read by their owner alone; `durable` ones are on the disk when
    this returns (a few ms), the others when the system sees fit.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    mode = 0o600 if private else 0o666
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(partial, flags, mode), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if not private and path.exists():
            partial.chmod(path.stat().st_mode)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
