"""What a child does to itself before student code runs: namespaces, mounts, limits, no powers."""

from __future__ import annotations

import fcntl
import math
import os
import random
import resource
import socket
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from grader.inside.process import seccomp, syscalls
from grader.inside.process.budget import MIB, Budget
from grader.inside.process.watch import memory_of_self

STUDENT = 1000
"""User and group id inside. Not 0: root in a user namespace is exempt from RLIMIT_NPROC."""

HOME = "/tmp/home"

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_OWN_TASKS = 2
"""The keeper and pid 1 count against the same RLIMIT_NPROC as the student's processes."""

_ADDRESS_ROOM = 4096 * MIB
"""Address space beyond the memory budget: thread stacks and glibc arenas are reserved, not used."""

_GRAB = 1024 * MIB
"""What one process may allocate beyond the memory budget: more than it can touch between two looks
of the watchdog, so that the watchdog names the cause and this limit is only the second wall."""


def enter_namespaces() -> None:
    """Move into a new user, mount, ipc and net namespace; the next fork is pid 1 of a new pid namespace.

    Files here belong to user 1000, who is mapped to the warm process's user.
    """
    user, group = os.geteuid(), os.getegid()
    syscalls.unshare(
        syscalls.CLONE_NEWUSER
        | syscalls.CLONE_NEWPID
        | syscalls.CLONE_NEWNS
        | syscalls.CLONE_NEWIPC
        | syscalls.CLONE_NEWNET
    )
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{STUDENT} {user} 1")
    _write("/proc/self/gid_map", f"{STUDENT} {group} 1")


def mount_scratch(budget: Budget) -> tuple[int, ...]:
    """Mount empty /tmp and /dev/shm of bounded size; return descriptors of them to measure by."""
    # An inode costs the kernel about 1 KiB whatever its size, so their number is bounded too.
    options = f"size={budget.scratch_bytes},nr_inodes=16384,mode=1777"
    folders = ("/tmp", "/dev/shm")
    for folder in folders:
        syscalls.mount("tmpfs", folder, syscalls.MS_NOSUID | syscalls.MS_NODEV, options)
    # The box's pseudo-terminals are shared by its children: one could write to another's.
    syscalls.mount("tmpfs", "/dev/pts", syscalls.MS_RDONLY, "size=4096")
    Path(HOME).mkdir(0o700)
    return tuple(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for folder in folders)


def mount_proc() -> None:
    """Show this pid namespace only. Read-only: nothing honest writes there, and /proc/PID/mem is shut."""
    flags = syscalls.MS_RDONLY | syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
    syscalls.mount("proc", "/proc", flags)


def raise_loopback() -> None:
    """Bring `lo` up: gloo's ranks talk over 127.0.0.1, and nothing else is there to talk to."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH22x", b"lo", 0)
        answer = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request)
        flags = struct.unpack_from("H", answer, 16)[0] | _IFF_UP
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", flags))


def volunteer_for_the_killer() -> None:
    """If the whole machine runs out of memory, let the kernel take this tree first."""
    with suppress(FileNotFoundError):  # no /proc: macOS, tier 4
        _write("/proc/self/oom_score_adj", "1000")


def set_limits(budget: Budget) -> None:
    """Set the limits the kernel keeps per process; the watchdog keeps those of the whole tree."""
    # The watchdog ends a spinning tree at cpu_seconds; these catch what it might miss.
    cpu = math.ceil(budget.cpu_seconds) + 1
    _limit(resource.RLIMIT_CPU, cpu, cpu + 1)
    _limit(resource.RLIMIT_FSIZE, budget.file_bytes)
    _limit(resource.RLIMIT_NOFILE, budget.open_files)
    _limit(resource.RLIMIT_CORE, 0)
    now = memory_of_self()
    if now:
        _limit(resource.RLIMIT_DATA, now["VmData"] + budget.memory_bytes + _GRAB)
        _limit(resource.RLIMIT_AS, now["VmSize"] + budget.memory_bytes + _ADDRESS_ROOM)


def limit_tasks(budget: Budget) -> None:
    """Let the kernel refuse forks and threads beyond the budget, where it counts them per namespace.

    Before Linux 5.14 it counted every process of the user on the machine; there the watchdog alone
    bounds the tree, up to 50 ms late.
    """
    major, minor = (int(part) for part in os.uname().release.split(".")[:2])
    if (major, minor) >= (5, 14):
        _limit(resource.RLIMIT_NPROC, budget.processes + _OWN_TASKS)


def give_up_powers() -> None:
    """No capability, no set-user-id, no system call that could undo the confinement. For good."""
    syscalls.drop_capabilities()
    syscalls.gain_no_privileges()
    seccomp.load()


def close_all_but(keep: Iterable[int]) -> None:
    """Close every descriptor from 3 on that is not in `keep`."""
    low = 3
    for descriptor in sorted(number for number in keep if number >= 3):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, _most_files())


def point_standard_streams_nowhere() -> None:
    """Put /dev/null on 0, 1 and 2: Python's own streams are captured elsewhere, the rest is discarded."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def reseed() -> None:
    """Give the fork random states of its own.

    From the system's entropy: code that knew them could foresee what a probe draws. The seed of
    str hashes cannot be changed after start; it is the same (0) in every child, so that the order
    of a set is the same whenever a submission is graded.
    """
    seed = int.from_bytes(os.urandom(4), "little")
    random.seed(seed)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(seed)
    if "torch" in sys.modules:
        # torch.manual_seed would also queue a seeding of devices, which reads source files: 1.5 ms.
        sys.modules["torch"].default_generator.manual_seed(seed)


def _most_files() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _limit(which: int, soft: int, hard: int | None = None) -> None:
    ceiling = resource.getrlimit(which)[1]
    wanted = soft if hard is None else hard
    if ceiling != resource.RLIM_INFINITY:
        wanted = min(wanted, ceiling)
    resource.setrlimit(which, (min(soft, wanted), wanted))


def _write(path: str, text: str) -> None:
    Path(path).write_text(text)
