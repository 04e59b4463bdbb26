"""Which lines of an answer ran in a fork of this process. Memory that both share holds a byte a line.

`sys.settrace` tells of lines; `sys.monitoring`, which is cheaper, came with Python 3.12.
"""

from __future__ import annotations

import mmap
import sys
import threading
from types import FrameType
from typing import Any


class LinesRun:
    """The lines of one file that ran, as a fork tells who forked it."""

    def __init__(self, filename: str, lines: int) -> None:
        self._filename = filename
        self._count = lines + 1
        self._ran = mmap.mmap(-1, self._count)

    def begin(self) -> None:
        """Tell of lines from now on. For the fork, before the answer is loaded in it."""
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def take(self) -> frozenset[int]:
        """Return the lines that ran since the last time."""
        told = self._ran[: self._count]
        self._ran[: self._count] = bytes(self._count)
        return frozenset(number for number, ran in enumerate(told) if ran)

    def _enter(self, frame: FrameType, event: str, value: Any) -> Any:
        if frame.f_code.co_filename != self._filename:
            return None
        if frame.f_code.co_name == "<module>":  # its definitions are no part of an answer's run
            return None
        return self._line

    def _line(self, frame: FrameType, event: str, value: Any) -> Any:
        if frame.f_lineno < self._count:
            self._ran[frame.f_lineno] = 1
        return self._line
