"""Looks at what a tree of processes has used, and names the budget it went over."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from grader.inside.process.budget import Budget
from grader.inside.process.ending import CPU, MEMORY, PROCESSES, Ending

LOOK_EVERY = 0.05
"""Seconds between two looks. One process touches at most some 150 MB in that time; a look at three
processes takes 0.2 ms, so watching costs well under 1% of a core."""

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class _Use:
    cpu_seconds: float
    tasks: int
    anonymous: int
    shared: int
    address_space: int


@dataclass(frozen=True)
class Tree:
    """The processes to look at. `proc` is a descriptor of a /proc in which `pids()` are to be found."""

    proc: int
    pids: Callable[[], Iterable[int]]
    scratch: tuple[int, ...]
    """Descriptors of the tmpfs folders whose contents count as memory."""
    warm_address_space: int = 0
    """What every process of the tree inherited."""
    inherited: int = 0
    """Bytes of anonymous memory that all of them share with who forked them: a kernel may hold
    gigabytes, which are not theirs."""


def breach(tree: Tree, budget: Budget) -> Ending | None:
    """Return the ending that the tree has earned by now, or None.

    A process that was waited for counts in its parent's children's time, so a sum over the living
    misses only what a process that ignores SIGCHLD started; the wall clock bounds that.
    """
    pids = list(tree.pids())
    uses = [use for pid in pids if (use := _look(tree.proc, pid)) is not None]
    if sum(use.cpu_seconds for use in uses) > budget.cpu_seconds:
        return Ending(CPU)
    if sum(use.tasks for use in uses) > budget.processes + 1:  # the first process is ours
        return Ending(PROCESSES)
    files = sum(_bytes_in(folder) for folder in tree.scratch)
    # First two cheap upper bounds. Resident memory counts the pages inherited from the warm process
    # in every process. Address space shows what is not resident: shared memory that was filled and
    # then unmapped from the page tables by madvise stays allocated, in no process's size.
    resident = sum(use.anonymous + use.shared for use in uses)
    reserved = sum(max(0, use.address_space - tree.warm_address_space) for use in uses)
    if files + max(resident, reserved) <= budget.memory_bytes:
        return None
    # Only above them the exact share (Pss), which walks page tables: 1 to 4 ms a process.
    private = sum(_private_share(tree.proc, pid) for pid in pids) - _share_of(tree, len(pids))
    if files + private + _shared_segments(tree.proc, pids) > budget.memory_bytes:
        return Ending(MEMORY)
    return None


def memory_of_self() -> dict[str, int]:
    """Return the Vm* and Rss* lines of this process's status, in bytes; empty without a /proc."""
    try:
        return _fields(Path("/proc/self/status").read_bytes())
    except FileNotFoundError:
        return {}


def _look(proc: int, pid: int) -> _Use | None:
    status = _read(proc, f"{pid}/status")
    stat = _read(proc, f"{pid}/stat")
    if not status or not stat:
        return None
    fields = _fields(status)
    # The name in parentheses may hold spaces and parentheses: count from the last one. Then utime,
    # stime, cutime, cstime are fields 14 to 17, the state being 3, and num_threads 20.
    numbers = stat[stat.rindex(b")") + 2 :].split()
    ticks = sum(int(number) for number in numbers[11:15])
    return _Use(
        cpu_seconds=ticks / _TICKS,
        tasks=int(numbers[17]),
        anonymous=fields.get("RssAnon", 0),
        shared=fields.get("RssShmem", 0),
        address_space=fields.get("VmSize", 0),
    )


def _private_share(proc: int, pid: int) -> int:
    """Bytes of anonymous memory that this process answers for, a page of two processes half to each.

    A process can make itself unreadable; then its whole resident memory counts.
    """
    try:
        return _fields(_read(proc, f"{pid}/smaps_rollup", refused_is_error=True)).get("Pss_Anon", 0)
    except PermissionError:
        use = None if pid == 1 else _look(proc, pid)  # 1 is ours, and unreadable on purpose
        return 0 if use is None else use.anonymous + use.shared


def _share_of(tree: Tree, count: int) -> int:
    """Return what `count` processes answer for of what they inherited and never wrote to.

    One more holds it: who forked them. What they did write to is their own, and counted in full.
    """
    return tree.inherited * count // (count + 1)


def _shared_segments(proc: int, pids: Iterable[int]) -> int:
    """Bytes of the shared memory without a file that the processes map, each segment counted once."""
    segments: dict[bytes, int] = {}
    for pid in pids:
        for line in _read(proc, f"{pid}/maps").splitlines():
            if line.endswith(b"/dev/zero (deleted)"):  # the kernel's name for such a segment
                extent, _, offset, _, inode, _ = line.split(maxsplit=5)
                first, last = (int(end, 16) for end in extent.split(b"-"))
                segments[inode] = max(segments.get(inode, 0), int(offset, 16) + last - first)
    return sum(segments.values())


def _fields(text: bytes) -> dict[str, int]:
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[2] == b"kB":
            found[words[0].rstrip(b":").decode()] = int(words[1]) * 1024
    return found


def _bytes_in(folder: int) -> int:
    state = os.fstatvfs(folder)
    return (state.f_blocks - state.f_bfree) * state.f_frsize


def _read(proc: int, name: str, refused_is_error: bool = False) -> bytes:
    """Return a file of /proc, empty when its process has gone."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
    except PermissionError:
        if refused_is_error:
            raise
        return b""
    except OSError:
        return b""
    try:
        parts = []
        while part := os.read(descriptor, 65536):
            parts.append(part)
        return b"".join(parts)
    except PermissionError:
        if refused_is_error:
            raise
        return b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)
