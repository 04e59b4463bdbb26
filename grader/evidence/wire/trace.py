"""The marks that the box puts into the trace of its operators, and that the grader looks for there."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

PREFIX = "undertorch "

BEGIN = PREFIX + "begin"
END = PREFIX + "end"
"""What a probe runs is between these two."""

FLUSH = PREFIX + "flush"
"""Stands last in what is there when a reply is sent."""

SWITCH = PREFIX + "switch"
"""Code called what would stop the trace."""

TRIPPED = PREFIX + "tripped"
"""The tripwire saw a rule broken: its number."""

PRISTINE = PREFIX + "pristine"
"""What the grader leans on beside the student's code, as a fingerprint: before, and after each probe."""

WATCHES = PREFIX + "watches"
"""An instrument that is a dispatch mode begins: its key."""

TOLD = PREFIX + "told"
"""An instrument saw something: its key, what it saw."""

NOTED = PREFIX + "noted"
"""It is done: its key, the fingerprint of its notes."""


def fingerprint(lines: Iterable[str]) -> str:
    """Return a short sum of what was told, in order."""
    return f"{zlib.crc32(chr(10).join(lines).encode()):08x}"


FORK = b"\n@@ undertorch fork\n"
JOIN = b"\n@@ undertorch join\n"
"""Around the trace of a fork, which may hold those of its own forks."""
