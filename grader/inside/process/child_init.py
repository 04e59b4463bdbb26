"""Pid 1 of a child's namespace: confines itself, starts the student's process, buries the dead.

The student's code is not pid 1 itself. To pid 1 the kernel delivers no signal that it has no handler
for, so `os.kill(os.getpid(), SIGTERM)` and `abort()` would behave unlike anywhere else, and orphans
of the student's code would pile up as zombies in a process that does not expect them.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from grader.inside.process import confine, syscalls
from grader.inside.process.budget import Budget

READY = 1
ENDED = 2

_HEAD = struct.Struct("=BiH")
_TROUBLE_LIMIT = 1024
_SERVE_FAILED = 70
"""Exit code for an exception that came out of `serve`: EX_SOFTWARE of sysexits.h."""


@dataclass(frozen=True)
class ChildStatus:
    """What pid 1 tells the keeper: READY once confined, then ENDED with an exit code or a trouble."""

    kind: int
    code: int = 0
    trouble: str = ""

    def write(self, pipe: int) -> None:
        """Write it in one piece (shorter than PIPE_BUF)."""
        text = self.trouble.encode()[:_TROUBLE_LIMIT]
        os.write(pipe, _HEAD.pack(self.kind, self.code, len(text)) + text)

    @staticmethod
    def read(pipe: int) -> ChildStatus:
        """Read one; pid 1 gone without one counts as killed."""
        head = os.read(pipe, _HEAD.size)
        if len(head) < _HEAD.size:
            return ChildStatus(ENDED, -signal.SIGKILL)
        kind, code, length = _HEAD.unpack(head)
        return ChildStatus(
            kind, code, os.read(pipe, length).decode(errors="replace") if length else ""
        )


def run(
    channel: int,
    report: int,
    budget: Budget,
    serve: Callable[[socket.socket], None],
    *,
    isolate: bool,
) -> NoReturn:
    """Be the first process of a child until the student's process has ended."""
    try:
        confine.volunteer_for_the_killer()
        if isolate:
            syscalls.die_with_parent(signal.SIGKILL)
            confine.mount_proc()
        os.setsid()
        confine.point_standard_streams_nowhere()
        confine.set_limits(budget)
        if isolate:
            confine.limit_tasks(budget)
            confine.give_up_powers()
            # The student's code has our user id: without this it could open our memory.
            syscalls.set_dumpable(False)
        student = os.fork()
    except Exception as error:
        ChildStatus(ENDED, trouble=f"{type(error).__name__}: {error}").write(report)
        os._exit(1)
    if student == 0:
        try:
            _be_the_student(channel, serve, isolate=isolate)
        finally:
            os._exit(_SERVE_FAILED)
    os.close(channel)
    # Pid 1 gets only signals that it handles: with Python's SIGINT handler gone, none.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ChildStatus(READY).write(report)
    ChildStatus(ENDED, _wait_for(student)).write(report)
    os._exit(0)


def _wait_for(student: int) -> int:
    """Reap every orphan, return the student's exit code or its signal, negative."""
    while True:
        pid, status = os.wait()
        if pid == student:
            return os.waitstatus_to_exitcode(status)


def _be_the_student(
    channel: int, serve: Callable[[socket.socket], None], *, isolate: bool
) -> NoReturn:
    os.setsid()
    if isolate:
        syscalls.set_dumpable(True)
        os.chdir(confine.HOME)
    confine.close_all_but((channel,))
    os.register_at_fork(after_in_child=lambda: _let_go(channel))
    confine.reseed()
    try:
        serve(socket.socket(fileno=channel))
    except SystemExit as leaving:
        code = leaving.code
        os._exit(code & 0xFF if isinstance(code, int) else int(code is not None))
    os._exit(0)


def _let_go(channel: int) -> None:
    """Keep a fork of the student's process from answering in its place.

    The number stays taken, so that no later file gets it and is written to by mistake.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, channel)
    os.close(nowhere)
