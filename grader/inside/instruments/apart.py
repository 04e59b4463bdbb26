"""A program that starts processes of its own, run in a fork with a limit: it may hang or leave some.

A loader that waits for a worker which never answers would hold up the whole grading. Here that is
evidence: the fork and all that it started are ended, and the check hears of it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from grader.evidence.wire.channel import ChannelError, ChannelTimeout, receive_frame, send_frame
from grader.evidence.wire.codec import decode, encode
from grader.evidence.wire.raised import Relayed, report
from grader.evidence.wire.tensors import Refused
from grader.inside import witness
from grader.inside.forked import settle
from grader.inside.instruments.patience import Patience

SECONDS = 5.0
"""Longest life of the fork. A body that fetches a few batches by two workers takes 0.1 s."""


class Hung(Exception):
    """The fork gave no answer in time."""


class Died(Exception):
    """The fork ended without an answer."""


def apart(body: Callable[[], object], *, seconds: float = SECONDS) -> Any:
    """Run `body()` in a fork with one thread; return its result, plain data.

    What the body starts with multiprocessing is forked, unless it asks for another start method.
    Raises what it raised (as `Relayed`), `Hung` after `seconds` (see `Patience`), or `Died`. The fork
    has a process group of its own, and none of the group is left when this returns. POSIX only.
    """
    pid, answers = start_fork(body)
    try:
        answer = _receive(answers, Patience(seconds, [pid]))
    finally:
        end_fork(pid)
        answers.close()
    if answer["raised"]:
        raise Relayed(answer["raised"])
    return answer["value"]


def start_fork(body: Callable[[], object]) -> tuple[int, socket.socket]:
    """Fork, and run `body()` there; return the fork's id and the socket on which its answer comes.

    The answer is one frame, `{"value": …, "raised": …}` (see `grader.evidence.wire.codec`). The fork stays
    until `end_fork`, so that nobody who talks to it hears of a closed connection.
    """
    ours, theirs = socket.socketpair()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of forks with threads
        pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            ours.close()
            answer = _answer(body)
            witness.flush()
            send_frame(theirs, answer)
            theirs.recv(1)  # until we are killed, or our parent is gone
        finally:
            os._exit(0)
    theirs.close()
    with suppress(OSError):  # it was faster, or is gone
        os.setpgid(pid, pid)
    return pid, ours


def end_fork(pid: int) -> None:
    """End a fork that `start_fork` made, and all of its process group."""
    for kill in (os.killpg, os.kill):  # the group may not be there yet
        try:
            kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    os.waitpid(pid, 0)


def _answer(body: Callable[[], object]) -> bytes:
    settle()
    multiprocessing.set_start_method("fork", force=True)  # from Python 3.14 on it is another one
    value: object = None
    error: dict[str, Any] | None = None
    try:
        value = body()
    except BaseException as raised:  # SystemExit is the student's too
        error = report(raised)
    try:
        return encode({"value": value, "raised": error})
    except Refused as refused:
        return encode({"value": None, "raised": report(TypeError(f"the result is {refused}"))})


def _receive(answers: socket.socket, patience: Patience) -> dict[str, Any]:
    if patience.wait([answers]):
        try:
            found: dict[str, Any] = decode(receive_frame(answers, patience.deadline))
            return found
        except ChannelTimeout:
            pass
        except ChannelError:
            raise Died("the program's process ended without an answer") from None
    raise Hung("still waiting: something never came, or never ended")
