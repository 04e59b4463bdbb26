"""The keeper: holds one child's leash, watches what its tree uses, ends it, and says how it ended."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from grader.evidence.wire.channel import send_frame
from grader.inside.process import confine, syscalls
from grader.inside.process.budget import SOCKET_BYTES, Budget
from grader.inside.process.child_init import READY, ChildStatus, run
from grader.inside.process.ending import ASKED, SETUP, SOCKETS, Ending, from_wait_status
from grader.inside.process.sockets import buffered
from grader.inside.process.watch import LOOK_EVERY, Tree, breach, memory_of_self

Serve = Callable[[socket.socket], None]

Look = Callable[[], Ending | None]
"""Says how a tree of processes has to end by now, None if it may go on."""


def keep(
    channel: int, leash: int, budget: Budget, serve: Serve, *, warm: int, isolate: bool
) -> NoReturn:
    """Run one child to its end in this process, a fresh fork of the warm one.

    `channel` goes to the student's process, `leash` stays here. `isolate` is False in tier 4 only.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    confine.close_all_but((channel, leash))
    host = socket.socket(fileno=leash)
    try:
        ending = (_isolated if isolate else _bare)(channel, host, budget, serve, warm)
    except OSError as error:
        ending = Ending(SETUP, error.errno or 0, str(error))
    with suppress(OSError):  # the host is gone: nobody left to tell
        send_frame(host, ending.encode())
    os._exit(0)


def _isolated(channel: int, host: socket.socket, budget: Budget, serve: Serve, warm: int) -> Ending:
    confine.enter_namespaces()
    _die_with(warm)
    scratch = confine.mount_scratch(budget)
    inherited = memory_of_self().get("VmSize", 0)
    confine.raise_loopback()
    report, first = _fork_first(channel, host, budget, serve, isolate=True)

    def end() -> None:
        # The death of pid 1 takes the namespace with it, and waiting for pid 1 waits for all of it.
        os.kill(first, signal.SIGKILL)

    def look_around() -> Look:
        # Pid 1 has mounted its /proc in the mount namespace we share: it shows the tree, no more.
        proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        tree = Tree(proc, lambda: _numbers(proc), scratch, inherited)
        return lambda: breach(tree, budget) or _too_much_in_sockets(proc)

    ending = _watch(report, host, look_around)
    end()
    os.waitpid(first, 0)
    return ending


def _bare(channel: int, host: socket.socket, budget: Budget, serve: Serve, warm: int) -> Ending:
    """Tier 4: limits, a watchdog where there is a /proc, and a best effort to leave no process."""
    linux = Path("/proc/self").is_dir()
    inherited = memory_of_self().get("VmSize", 0)
    if linux:
        # No signal at the warm process's death: there is no namespace to fall with us, and the
        # leash tells us as well when the host goes.
        syscalls.adopt_orphans()
    report, first = _fork_first(channel, host, budget, serve, isolate=False)

    def look_around() -> Look:
        if not linux:
            return lambda: None
        proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        tree = Tree(proc, lambda: _descendants(proc), (), inherited)
        return lambda: breach(tree, budget)

    ending = _watch(report, host, look_around)
    _kill_descendants(first, linux)
    return ending


def _fork_first(
    channel: int, host: socket.socket, budget: Budget, serve: Serve, *, isolate: bool
) -> tuple[int, int]:
    """Fork the first process of the tree; return the pipe it reports on, and its pid."""
    ours, theirs = os.pipe()
    first = os.fork()
    if first == 0:
        try:
            os.close(ours)
            os.close(host.detach())
            run(channel, theirs, budget, serve, isolate=isolate)
        finally:
            os._exit(1)
    os.close(theirs)
    os.close(channel)
    return ours, first


def _too_much_in_sockets(proc: int) -> Ending | None:
    return Ending(SOCKETS) if buffered(proc) > SOCKET_BYTES else None


def _watch(report: int, host: socket.socket, look_around: Callable[[], Look]) -> Ending:
    """Wait until the child ends by itself, goes over a budget, or the host lets go.

    `look_around` is called when the child is ready, and returns what is to be called from then on.
    """
    kills_before = _kernel_kills()
    look: Look | None = None
    poller = select.poll()
    poller.register(report, select.POLLIN)
    poller.register(host, select.POLLIN)
    next_look = time.monotonic() + LOOK_EVERY
    while True:
        pause = max(0.0, next_look - time.monotonic()) if look else None
        seen = [number for number, _ in poller.poll(None if pause is None else pause * 1000)]
        if report in seen:
            news = ChildStatus.read(report)
            if news.kind == READY:
                look = look_around()
                next_look = time.monotonic() + LOOK_EVERY
                _tell_ready(host)
                continue
            if look is None or news.trouble:
                return Ending(
                    SETUP, detail=news.trouble or "the child ended while it was being set up"
                )
            return from_wait_status(news.code, _kernel_kills() > kills_before)
        if host.fileno() in seen:
            return Ending(ASKED)
        if look and time.monotonic() >= next_look:
            if over := look():
                return over
            next_look = time.monotonic() + LOOK_EVERY


def _tell_ready(host: socket.socket) -> None:
    with suppress(OSError):  # the next poll sees that the host is gone
        send_frame(host, b"ready")


def _die_with(warm: int) -> None:
    syscalls.die_with_parent(signal.SIGKILL)
    if os.getppid() != warm:  # it ended before the kernel was told
        os._exit(1)


def _numbers(proc: int) -> Iterator[int]:
    return (int(name) for name in os.listdir(proc) if name.isdigit())


def _descendants(proc: int) -> list[int]:
    parents = {}
    for pid in _numbers(proc):
        try:
            with os.fdopen(os.open(f"{pid}/stat", os.O_RDONLY, dir_fd=proc), "rb") as stat:
                parents[pid] = int(stat.read().rpartition(b")")[2].split()[1])
        except OSError:
            continue
    found: list[int] = []
    generation = {os.getpid()}
    while generation := {pid for pid, parent in parents.items() if parent in generation}:
        found += generation
    return found


def _kill_descendants(first: int, linux: bool) -> None:
    if not linux:
        os.killpg(first, signal.SIGKILL)
        return
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    while pids := _descendants(proc):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return


def _kernel_kills() -> int:
    """How often the kernel's out-of-memory killer struck on this machine since it started."""
    try:
        with Path("/proc/vmstat").open("rb") as vmstat:
            for line in vmstat:
                if line.startswith(b"oom_kill "):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0
