"""A warm process beside this one, for work on data that may be made to be slow or large to work on.

It is a fork of this process and runs our code alone. Each request has limits of processor time, memory
and waiting. Who goes over one costs its own request: the process is gone, and the next has a fresh one.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, Self

from grader.evidence.wire.channel import (
    ChannelError,
    ChannelTimeout,
    FrameTooLarge,
    receive_frame,
    send_frame,
)
from grader.inside import interrupts
from grader.inside.process import confine, syscalls
from grader.inside.process.budget import MIB
from grader.inside.process.watch import memory_of_self

_Serve = Callable[[Any], Any]

_ROOM = 48 * MIB
"""Memory beyond its limit that a process can have for a moment, so that most often it is still able to
say that it went over."""

_GROWN = 48 * MIB
"""A process that keeps more than this of what it did is replaced: caches fill."""


@dataclass(frozen=True)
class Limits:
    """What one request may take."""

    cpu_seconds: float = 1.5
    """An ordinary notebook takes 0.1 s to read, the largest that is read at all a good second."""

    memory_bytes: int = 128 * MIB
    """A notebook of 25 MB takes 60 MiB. What our process had freed before its fork comes on top."""

    wall_seconds: float = 60.0
    """Only a process that sleeps, or one of forty for each core, is stopped by this."""


class Exceeded(Exception):
    """A request went over a limit, or ended the process; the message continues "It …"."""


class Failed(Exception):
    """The work raised something; the message is its kind. `trace` is where."""

    def __init__(self, kind: str, trace: str) -> None:
        super().__init__(kind)
        self.trace = trace


class Aside:
    """A process that answers requests, both JSON data, with the function `answer`.

    It starts with the first request, as a copy of this process: what is in memory then, it has too.
    """

    def __init__(self, answer: _Serve, limits: Limits = Limits()) -> None:
        self._answer = answer
        self._limits = limits
        self._pid = 0
        self._owner = 0
        self._socket: socket.socket | None = None

    def ask(self, request: Any) -> Any:
        """Return the answer. Raises `Exceeded` and `Failed`, which say nothing about the next one."""
        if self._socket is not None and self._is_no_more():
            self._socket.close()
            self._socket = None
        channel = self._socket or self._start()
        try:
            with interrupts.let_through():
                send_frame(channel, json.dumps(request).encode())
                frame = receive_frame(channel, time.monotonic() + self._limits.wall_seconds)
        except ChannelTimeout:
            self.close()
            raise Exceeded(f"took more than {self._limits.wall_seconds:g} s") from None
        except FrameTooLarge:
            self.close()
            raise Exceeded("gave more than a frame holds") from None
        except (ChannelError, OSError):
            raise Exceeded(self._why()) from None
        except BaseException:  # an interrupt: the reply may still come, and would answer the next
            self.close()
            raise
        reply = json.loads(frame)
        if reply["leaves"]:
            self.close()
        if "trace" in reply:
            raise Failed(reply["kind"], reply["trace"])
        if "answer" not in reply:
            raise Exceeded(self._over_memory)
        return reply["answer"]

    def _is_no_more(self) -> bool:
        """Say whether the process ended between two requests, or belongs to who forked us."""
        return self._owner != os.getpid() or os.waitpid(self._pid, os.WNOHANG)[0] != 0

    @property
    def _over_memory(self) -> str:
        return f"took more than {self._limits.memory_bytes // MIB} MiB of memory"

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with warnings.catch_warnings():
                # 3.12 warns of forks with threads; the fork runs plain Python alone
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                _become_child(theirs, self._answer, self._limits, mask)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
        self._pid, self._owner, self._socket = pid, os.getpid(), ours
        return ours

    def _why(self) -> str:
        """Return why the process ended, which it did by itself."""
        assert self._socket is not None
        self._socket.close()
        self._socket = None
        _, status = os.waitpid(self._pid, 0)
        code = -os.waitstatus_to_exitcode(status)
        if code == signal.SIGPROF:
            return f"took more than {self._limits.cpu_seconds:g} s of processor time"
        if code == signal.SIGKILL:
            return self._over_memory  # nobody else kills it
        name = signal.Signals(code).name if code in set(signal.Signals) else f"exit code {-code}"
        return f"ended its process ({name})"

    def close(self) -> None:
        """End the process, if there is one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            if self._owner == os.getpid():
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _become_child(
    channel: socket.socket, answer: _Serve, limits: Limits, mask: set[int | signal.Signals]
) -> NoReturn:
    code = 1
    try:
        if sys.platform == "linux":
            syscalls.die_with_parent(signal.SIGKILL)
        interrupts.start_anew()
        for number in (signal.SIGPROF, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        confine.close_all_but((channel.fileno(),))
        _serve(channel, answer, limits)
        code = 0
    finally:
        os._exit(code)


def _hard_limit() -> int:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def _serve(channel: socket.socket, answer: _Serve, limits: Limits) -> None:
    before = memory_of_self()
    if before:
        most, hard = before["VmSize"] + limits.memory_bytes + _ROOM, _hard_limit()
        resource.setrlimit(resource.RLIMIT_AS, (min(most, hard), hard))
    leaves = False
    while not leaves:
        try:
            frame = receive_frame(channel)
        except ChannelError:
            return
        # of this request alone: RLIMIT_CPU counts whole seconds of a whole life
        signal.setitimer(signal.ITIMER_PROF, limits.cpu_seconds)
        try:
            reply = {"answer": answer(json.loads(frame))}
        except MemoryError:
            reply = {}
        except Exception as error:
            reply = {"kind": type(error).__name__, "trace": traceback.format_exc()}
        now = memory_of_self()
        # a parser that had no memory left may have called the text bad instead
        if now and now["VmPeak"] > before["VmSize"] + limits.memory_bytes:
            reply = {}
        leaves = not reply or bool(now and now["VmSize"] > before["VmSize"] + _GROWN)
        payload = json.dumps({**reply, "leaves": leaves}).encode()
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        send_frame(channel, payload)
