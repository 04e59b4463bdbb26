"""A transport without a box, for code that is your own: a fork of this process."""

from __future__ import annotations

import faulthandler
import gc
import os
import select
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from grader import show_to_nobody
from grader.box.ended import explain, out_of_time
from grader.evidence.outcome import Ended, Outcome
from grader.evidence.record import Record, with_seen
from grader.evidence.wire.channel import ChannelError, ChannelTimeout, receive_frame, send_frame
from grader.inside import interrupts, serve
from grader.inside.probe import Probe
from grader.inside.process import confine, syscalls
from grader.inside.process.budget import Budget
from grader.inside.process.ending import from_wait_status
from grader.inside.process.watch import LOOK_EVERY, Tree, breach, memory_of_self

_GRACE = 1.0
"""Seconds between the end of the channel and the fork's own: who only closed its channel lives on."""


class Fork:
    """A fork of this process with a budget as in a box, but without walls. POSIX only.

    It starts with an empty `__main__`; or it answers about its copy of `names`, once `prepare` has
    run in it. What its tree of processes uses is looked at where there is a /proc.
    """

    def __init__(
        self,
        probes: dict[str, Probe],
        budget: Budget = Budget(),
        names: dict[str, Any] | None = None,
        prepare: Callable[[], object] = lambda: None,
    ) -> None:
        self._budget = budget
        self._patience = budget.waiting_seconds
        self._ended: Ended | None = None
        serve.warm_up()
        ours, theirs = socket.socketpair()
        before = memory_of_self()
        # Python runs hooks around a fork and swallows a Ctrl-C that comes in one of them
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with warnings.catch_warnings():
                # 3.12 warns of forks with threads
                warnings.simplefilter("ignore", DeprecationWarning)
                self._pid = os.fork()
            if self._pid == 0:
                _become_child(ours, theirs, budget, mask, _answering(probes, names, prepare))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
        self._socket = ours
        self._tree = _tree(self._pid, before)
        self._record: Record | None = None

    def ask(self, request: bytes, watch: bool = False) -> bytes:
        """Send the request to the fork. Raises `Ended` when it is gone or goes over its budget."""
        if self._ended is None:
            started = time.monotonic()
            try:
                with interrupts.let_through():
                    return self._exchange(request, started, watch)
            except Ended as ended:
                self._ended = ended
            except ChannelTimeout:
                self._ended = out_of_time(self._budget, self._patience)
            except (ChannelError, OSError):
                self._ended = self._own_end()
            finally:
                self._patience -= time.monotonic() - started
        self.close()
        raise self._ended

    def _exchange(self, request: bytes, started: float, watch: bool) -> bytes:
        deadline = started + max(0.0, min(self._budget.wall_seconds, self._patience))
        if watch and self._record is None and sys.platform == "linux":
            self._record = Record()
            send_frame(self._socket, request, self._record.descriptor)
        else:
            send_frame(self._socket, request)
        while not select.select([self._socket], [], [], LOOK_EVERY)[0]:
            if time.monotonic() > deadline:
                raise ChannelTimeout
            over = self._tree and breach(self._tree, self._budget)
            if over:
                raise explain(over, self._budget)
        reply = receive_frame(self._socket, deadline)
        if not watch:
            return reply
        return self._record.added(reply) if self._record else with_seen(reply, None)

    def _own_end(self) -> Ended:
        """Return how the fork ended by itself; if it lives on, it has closed its end of the channel."""
        end = time.monotonic() + _GRACE
        while self._pid and time.monotonic() < end:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                _end_session(self._pid)
                self._pid = 0
                code = os.waitstatus_to_exitcode(status)
                return explain(from_wait_status(code, killed_by_kernel=False), self._budget)
            time.sleep(0.01)
        return Ended(Outcome.KILLED, "Your code closed the channel that carries its results.")

    def close(self) -> None:
        """Kill the fork and all that it started, and reap it."""
        self._socket.close()
        if self._record:
            self._record.close()
        if self._pid:
            try:
                os.killpg(self._pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                os.kill(self._pid, signal.SIGKILL)
            _end_session(self._pid)  # before it is reaped: until then its number is nobody else's
            os.waitpid(self._pid, 0)
            self._pid = 0
        if self._tree:
            os.close(self._tree.proc)
            self._tree = None


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


def _tree(session: int, before: dict[str, int]) -> Tree | None:
    """Return what is to be looked at: a session that began with this much memory."""
    if not before:
        return None
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    members = lambda: list(_members(session))  # noqa: E731
    return Tree(proc, members, (), before.get("VmSize", 0), before.get("RssAnon", 0))


def _answering(
    probes: dict[str, Probe], names: dict[str, Any] | None, prepare: Callable[[], object]
) -> Callable[[socket.socket], None]:
    def answer(sock: socket.socket) -> None:
        prepare()
        serve.adopt(probes)
        if names is not None:
            serve.serve_names(sock, names)
            return
        show_to_nobody()  # given cells do here what they do in a box
        serve.serve_names(sock, serve.fresh_main())

    return answer


def _become_child(
    ours: socket.socket,
    theirs: socket.socket,
    budget: Budget,
    mask: set[int | signal.Signals],
    answer: Callable[[socket.socket], None],
) -> NoReturn:
    code = 1
    try:
        os.setsid()  # from here on the terminal's Ctrl-C is not for us
        if sys.platform == "linux":
            syscalls.die_with_parent(signal.SIGKILL)
        interrupts.start_anew()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        ours.close()
        confine.point_standard_streams_nowhere()
        confine.volunteer_for_the_killer()
        confine.set_limits(budget)
        # else a collection of garbage goes through all that our parent holds, and copies it: up to a
        # second that would count as the answer's
        gc.freeze()
        faulthandler.disable()  # an answer may end its process; whoever forked us need not tell
        answer(theirs)
        code = 0
    finally:
        os._exit(code)
