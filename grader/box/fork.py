"""Transports without a box: this very process, or a fork of it. For code that is your own."""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from grader.evidence.outcome import Ended, Outcome
from grader.evidence.wire.channel import ChannelError, ChannelTimeout, receive_frame, send_frame
from grader.inside import serve
from grader.inside.probe import Probe

WALL_SECONDS = 60.0
"""How long a fork may take for one answer; the box has finer budgets."""


class Here:
    """Asks about names of this process, such as those of a live kernel."""

    def __init__(self, probes: dict[str, Probe], names: dict[str, Any]) -> None:
        self._inside = serve.Inside(probes, names, live=True)

    def ask(self, request: bytes) -> bytes:
        """Answer the request here and now."""
        return self._inside.answer(request)

    def close(self) -> None:
        """Nothing to end."""


class Fork:
    """Asks a fork of this process, which starts with an empty `__main__`. POSIX only."""

    def __init__(self, probes: dict[str, Probe], wall_seconds: float = WALL_SECONDS) -> None:
        self._wall_seconds = wall_seconds
        serve.warm_up()
        ours, theirs = socket.socketpair()
        # Python runs hooks around a fork and swallows a Ctrl-C that comes in one of them
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with warnings.catch_warnings():
                # 3.12 warns of forks with threads
                warnings.simplefilter("ignore", DeprecationWarning)
                self._pid = os.fork()
            if self._pid == 0:
                _become_child(ours, theirs, probes, mask)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
        self._socket = ours
        self._ended: Ended | None = None

    def ask(self, request: bytes) -> bytes:
        """Send the request to the fork. Raises `Ended` when it is gone or takes too long."""
        if self._ended is not None:
            raise self._ended
        try:
            send_frame(self._socket, request)
            return receive_frame(self._socket, time.monotonic() + self._wall_seconds)
        except ChannelTimeout:
            self._ended = Ended(
                Outcome.TIMED_OUT, f"Your code gave no answer within {self._wall_seconds:.0f} s."
            )
        except (ChannelError, OSError):
            self._ended = Ended(Outcome.CRASHED, "Your code ended the process it ran in.")
        self.close()
        raise self._ended

    def close(self) -> None:
        """Kill the fork and all that it started, and reap it."""
        if self._pid:
            self._socket.close()
            try:
                os.killpg(self._pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                os.kill(self._pid, signal.SIGKILL)
            _end_session(self._pid)  # before it is reaped: until then its number is nobody else's
            os.waitpid(self._pid, 0)
            self._pid = 0


def _end_session(session: int) -> None:
    """Kill what is left of a session: ranks, say, are groups of their own (see `instruments.apart`).

    Linux tells who belongs to it; elsewhere such groups are left to end by themselves.
    """
    killed: set[int] = set()
    while found := set(_members(session)) - killed:  # one may fork before it dies
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed |= found


def _members(session: int) -> Iterator[int]:
    proc = Path("/proc")
    for name in os.listdir(proc) if proc.is_dir() else ():
        if name.isdigit():
            with suppress(OSError):
                if os.getsid(int(name)) == session:
                    yield int(name)


def _become_child(
    ours: socket.socket,
    theirs: socket.socket,
    probes: dict[str, Probe],
    mask: set[int | signal.Signals],
) -> None:
    try:
        os.setsid()  # from here on the terminal's Ctrl-C is not for us
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        ours.close()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        faulthandler.disable()  # an answer may end its process; whoever forked us need not tell
        serve.adopt(probes)
        serve.serve(theirs)
    finally:
        os._exit(0)
