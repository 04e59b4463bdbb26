"""Text that any file can hold, and files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def as_utf8(text: str) -> str:
    """Return text with `?` for each half of a surrogate pair: it has no UTF-8, so no file holds it."""
    return text.encode("utf-8", "replace").decode("utf-8")


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
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if not private and path.exists():
            partial.chmod(path.stat().st_mode)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
