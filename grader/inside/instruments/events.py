"""One log for several processes: what happened where, in one order."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LONGEST = 4096
"""Bytes of a line. Longer ones might be written in two goes, with another process's between."""


class Events:
    """The log. A fork of the process that made it writes into the same."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def note(self, *what: str | int | float | bool | None) -> None:
        """Append an event: strings and numbers. Raises ValueError above 4096 bytes of them."""
        line = json.dumps([os.getpid(), *what]).encode() + b"\n"
        if len(line) > _LONGEST:
            raise ValueError(f"an event of {len(line)} bytes is longer than {_LONGEST}")
        os.write(self._descriptor, line)

    def read(self) -> list[tuple[Any, ...]]:
        """Return all events so far, oldest first, each with its process's id in front."""
        size = os.fstat(self._descriptor).st_size
        return [
            tuple(json.loads(line)) for line in os.pread(self._descriptor, size, 0).splitlines()
        ]


@contextmanager
def watch_events() -> Iterator[Events]:
    """Open a log for this process and those that it forks inside the `with`: workers, ranks."""
    with tempfile.TemporaryFile() as file:
        flags = fcntl.fcntl(file, fcntl.F_GETFL)
        fcntl.fcntl(
            file, fcntl.F_SETFL, flags | os.O_APPEND
        )  # so that no process writes over another
        yield Events(file.fileno())
