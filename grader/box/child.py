"""The host's end of one child: asks it, and says in a student's words how it ended."""

from __future__ import annotations

import socket
import time
from typing import Self

from grader.box.ended import explain, out_of_time
from grader.box.tiers import BoxUnavailable, Tier
from grader.evidence.outcome import Ended, Outcome
from grader.evidence.record import Record
from grader.evidence.wire.channel import (
    FRAME_LIMIT,
    ChannelError,
    ChannelTimeout,
    FrameTooLarge,
    receive_frame,
    send_frame,
)
from grader.inside import interrupts
from grader.inside.process.budget import Budget
from grader.inside.process.ending import ASKED, SETUP, Ending

_GRACE = 1.0
"""Seconds between the end of the channel and the keeper's word on why, before we stop waiting for
the process to end by itself: a process that only closed its channel lives on."""

_GONE = Ending("gone")
"""The keeper ended without a word: it was killed. Where student code cannot reach it, so was the whole box."""

_LAST_WORD = 10.0
"""Seconds for the keeper to end a tree once told to. It takes 12 ms; a machine that swaps, longer."""


class _Unasked(Exception):
    """There was a reply before the request."""


class Child:
    """One isolated process that serves requests; a `Transport`. Not for several threads at once."""

    def __init__(
        self, channel: socket.socket, leash: socket.socket, budget: Budget, tier: Tier
    ) -> None:
        self._channel = channel
        self._leash = leash
        self._budget = budget
        self._tier = tier
        self._patience = budget.waiting_seconds
        self._ended: Ended | None = None
        self._ending: Ending | None = None
        self._record: Record | None = None

    def ask(self, request: bytes, watch: bool = False) -> bytes:
        """Send one request, return its reply.

        Raises `Ended` when the child is gone or goes over its budget, and again on every later
        call; `BoxUnavailable` when the box itself failed, which says nothing about the student.
        """
        if self._ended is not None:
            raise self._ended
        if len(request) > FRAME_LIMIT:
            raise ChannelError(
                f"a request of {len(request)} bytes is over the limit of {FRAME_LIMIT}"
            )
        try:
            return self._exchange(request, watch)
        except (ChannelTimeout, TimeoutError):
            self._ended = self._reason(0.0, out_of_time(self._budget, self._patience))
        except FrameTooLarge as error:
            self._ended = self._reason(
                0.0, _disturbed(f"sent a reply that cannot be read: {error}")
            )
        except _Unasked:
            self._ended = self._reason(0.0, _disturbed("answered before it was asked"))
        except (ChannelError, OSError):
            self._ended = self._reason(
                _GRACE, _disturbed("closed the channel that carries answers")
            )
        except BaseException:  # an interrupt: the reply may still come, and would answer the next
            self.close()
            raise
        raise self._ended

    def _exchange(self, request: bytes, watch: bool) -> bytes:
        started = time.monotonic()
        patience = min(self._budget.wall_seconds, self._patience)
        if self._spoke_unasked():
            raise _Unasked
        try:
            self._channel.settimeout(max(patience, 0.001))  # 0 would mean: do not wait at all
            with interrupts.let_through():
                if watch and self._record is None:
                    self._record = Record()
                    send_frame(self._channel, request, self._record.descriptor)
                else:
                    send_frame(self._channel, request)
                reply = receive_frame(self._channel, started + patience)
            return self._record.added(reply) if watch and self._record else reply
        finally:
            self._patience -= time.monotonic() - started

    def _spoke_unasked(self) -> bool:
        """Is there a reply to nothing? Taken for the answer to what we ask next, it would mislead."""
        self._channel.settimeout(0.0)
        try:
            return bool(self._channel.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False

    def wait_ready(self) -> None:
        """Wait until the child is confined. Raises BoxUnavailable when it could not be."""
        try:
            frame = receive_frame(self._leash, time.monotonic() + _LAST_WORD)
        except ChannelError as error:
            raise BoxUnavailable(f"a child of the box did not start: {error}") from None
        if frame != b"ready":
            ending = Ending.decode(frame)
            raise BoxUnavailable(f"a child of the box could not be confined: {ending.detail}")

    def close(self) -> None:
        """End the child. When this returns, no process of its tree is left."""
        if self._ended is None:
            self._ended = Ended(
                Outcome.KILLED, "The process that ran your code was ended by the grader."
            )
        self._end(0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reason(self, patience: float, otherwise: Ended) -> Ended:
        """Return how the child ended by itself, or `otherwise` when it was we who ended it."""
        ending = self._end(patience)
        if ending.how == SETUP:
            raise BoxUnavailable(f"a child of the box could not be confined: {ending.detail}")
        if ending == _GONE:
            if self._tier.guards_itself:
                raise BoxUnavailable("the box was killed around a child")
            return _disturbed("was killed together with what watched over it")
        return otherwise if ending.how == ASKED else explain(ending, self._budget)

    def _end(self, patience: float) -> Ending:
        """Wait `patience` seconds for the child's own end, then demand it; return the keeper's word."""
        if self._ending is None:
            self._ending = self._last_word(patience)
            self._channel.close()
            self._leash.close()
            if self._record is not None:
                self._record.close()
        return self._ending

    def _last_word(self, patience: float) -> Ending:
        try:
            if patience > 0:
                try:
                    return self._read_ending(patience)
                except ChannelTimeout:
                    pass
            self._leash.shutdown(socket.SHUT_WR)
            return self._read_ending(_LAST_WORD)
        except ChannelTimeout:
            return Ending(ASKED)
        except (ChannelError, OSError):
            return _GONE

    def _read_ending(self, seconds: float) -> Ending:
        deadline = time.monotonic() + seconds
        while (frame := receive_frame(self._leash, deadline)) == b"ready":
            pass
        return Ending.decode(frame)


def _disturbed(what: str) -> Ended:
    return Ended(Outcome.KILLED, f"The process that ran your code {what}.")
