"""The system calls a student's process may not make, as a small BPF program for the kernel."""

from __future__ import annotations

import ctypes
import errno
import platform
import socket
import struct
import sys
from dataclasses import dataclass

from grader.inside.process import syscalls

_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_RET_ALLOW = 0x7FFF_0000
_RET_ERRNO = 0x0005_0000
_RET_KILL_PROCESS = 0x8000_0000

# BPF opcodes: load a word of seccomp_data, compare, mask, return (linux/bpf_common.h).
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets in seccomp_data. Arguments are 64 bits; on little-endian machines the low word is first."""

_NEW_NAMESPACES = 0x7E02_0000
"""Every CLONE_NEW* bit that clone() takes: NS, CGROUP, UTS, IPC, USER, PID, NET."""

_X32 = 0x4000_0000
"""On x86_64 the same calls answer to a second set of numbers from here on."""

_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16)
"""Sockets that gloo needs (16 is netlink: getifaddrs). AF_VSOCK, which no namespace confines and
which reaches a hypervisor, and the rarely tested families stay shut."""


@dataclass(frozen=True)
class _Machine:
    audit_arch: int
    clone: int
    socket: int
    refused: tuple[int, ...]
    absent: tuple[int, ...]


# Refused with EPERM, in this order: unshare setns mount umount2 pivot_root chroot ptrace
# process_vm_readv process_vm_writev bpf perf_event_open add_key request_key keyctl userfaultfd
# kexec_load kexec_file_load open_by_handle_at kcmp syslog (the host's kernel log).
# Absent (ENOSYS, so that callers use their older road): shmget msgget semget memfd_create, memory
# that no process's size shows; clone3, whose flags BPF cannot read.
_MACHINES = {
    "x86_64": _Machine(
        0xC000_003E,
        clone=56,
        socket=41,
        refused=(
            272,
            308,
            165,
            166,
            155,
            161,
            101,
            310,
            311,
            321,
            298,
            248,
            249,
            250,
            323,
            246,
            320,
            304,
            312,
            103,
        ),
        absent=(29, 68, 64, 319),
    ),
    "aarch64": _Machine(
        0xC000_00B7,
        clone=220,
        socket=198,
        refused=(
            97,
            268,
            40,
            39,
            41,
            51,
            117,
            270,
            271,
            280,
            241,
            217,
            218,
            219,
            282,
            104,
            294,
            265,
            272,
            116,
        ),
        absent=(194, 186, 190, 279),
    ),
}

# Numbers from 424 on are the same everywhere: io_uring_setup io_uring_enter io_uring_register
# open_tree move_mount fsopen fsconfig fsmount fspick pidfd_getfd process_madvise mount_setattr
# open_tree_attr.
_REFUSED_EVERYWHERE = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 440, 442, 467)
_ABSENT_EVERYWHERE = (435, 447)
"""clone3, memfd_secret."""


def supported() -> bool:
    """Is there a table for this machine?"""
    return platform.machine() in _MACHINES and sys.byteorder == "little"


def load() -> None:
    """Put the filter on the calling process for good; needs no_new_privs. Raises OSError if refused."""
    program = _program(_MACHINES[platform.machine()])
    code = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: an unsigned short, padding, a pointer.
    header = ctypes.create_string_buffer(
        struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    )
    syscalls.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header)


def _program(machine: _Machine) -> bytes:
    lines = [
        _line(_LOAD, _ARCH),
        _line(_JUMP_EQUAL, machine.audit_arch, 1, 0),
        _answer(_RET_KILL_PROCESS),
    ]
    lines += [_line(_LOAD, _NUMBER), _line(_JUMP_AT_LEAST, _X32, 0, 1), _errno(errno.EPERM)]
    for number in (*machine.refused, *_REFUSED_EVERYWHERE):
        lines += [_line(_JUMP_EQUAL, number, 0, 1), _errno(errno.EPERM)]
    for number in (*machine.absent, *_ABSENT_EVERYWHERE):
        lines += [_line(_JUMP_EQUAL, number, 0, 1), _errno(errno.ENOSYS)]
    lines += _only_with(
        machine.clone, [_line(_JUMP_ANY_BIT, _NEW_NAMESPACES, 0, 1), _errno(errno.EPERM)]
    )
    families = [
        _line(_JUMP_EQUAL, family, len(_FAMILIES) - n, 0) for n, family in enumerate(_FAMILIES)
    ]
    lines += _only_with(machine.socket, [*families, _errno(errno.EAFNOSUPPORT)])
    return b"".join([*lines, _answer(_RET_ALLOW)])


def _only_with(number: int, body: list[bytes]) -> list[bytes]:
    """Run `body` on the first argument of system call `number`; allow where `body` falls through."""
    inner = [_line(_LOAD, _FIRST_ARGUMENT), *body, _answer(_RET_ALLOW)]
    return [_line(_JUMP_EQUAL, number, 0, len(inner)), *inner]


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _answer(value: int) -> bytes:
    return _line(_RETURN, value)


def _errno(number: int) -> bytes:
    return _answer(_RET_ERRNO | number)
