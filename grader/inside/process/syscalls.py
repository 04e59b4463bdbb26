"""The system calls that Python 3.11 does not offer, by ctypes; each raises OSError when refused."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x0002_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x2008_0522
_LAST_CAPABILITY = 63
"""Sets are 64 bits wide; the kernel answers EINVAL beyond the last it knows (41 in 6.18)."""

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Give the calling process new namespaces (os.unshare comes with Python 3.12)."""
    _call("unshare", flags)


def mount(kind: str, target: str, flags: int, options: str = "") -> None:
    """Mount a new filesystem of `kind` on `target`."""
    _call(
        "mount",
        kind.encode(),
        target.encode(),
        kind.encode(),
        ctypes.c_ulong(flags),
        options.encode(),
    )


def die_with_parent(signal_number: int) -> None:
    """Ask for a signal when the thread that forked this process ends."""
    prctl(_PR_SET_PDEATHSIG, signal_number)


def set_dumpable(dumpable: bool) -> None:
    """Let other processes of the same user look into this one's memory and descriptors, or not."""
    prctl(_PR_SET_DUMPABLE, int(dumpable))


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def gain_no_privileges() -> None:
    """Make set-user-id programs powerless in this process and all it starts."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Empty the bounding, ambient, permitted, effective and inheritable sets."""
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl(_PR_CAPBSET_DROP, capability)
        except OSError:
            break
    prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _call("capset", header, (ctypes.c_uint32 * 6)())


def prctl(option: int, first: int = 0, second: object = 0) -> None:
    """Call prctl; `second` may be a ctypes pointer."""
    pointer = second if not isinstance(second, int) else ctypes.c_ulong(second)
    _call("prctl", option, ctypes.c_ulong(first), pointer, ctypes.c_ulong(0), ctypes.c_ulong(0))


def _call(name: str, *arguments: object) -> None:
    ctypes.set_errno(0)
    if getattr(_libc, name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
