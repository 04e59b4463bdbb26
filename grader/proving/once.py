"""Processes that are asked each question once, however often an answer is judged.

To prove an exercise, every known mistake is judged, and compared with every other one: the same
programs get the same questions again and again, and some take seconds to answer.
"""

from __future__ import annotations

import hashlib
from types import TracebackType

from grader.evidence.outcome import Ended
from grader.evidence.wire.channel import Transport
from grader.verdict.grading import OpenTransport


class Once:
    """Opens transports that share what was answered to the same questions in the same order.

    The process that was asked last stays where it stands, for who goes on there: each holds some
    40 MB of its own. Who goes on elsewhere has another one, which is asked all from the beginning.
    """

    def __init__(self, open_transport: OpenTransport) -> None:
        self._open = open_transport
        self._replies: dict[bytes, bytes | Ended] = {}
        self._last: Transport | None = None
        self._asked = b""
        """What the last process was asked: the key of it."""

    def __enter__(self) -> Once:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._last is not None:
            self._last.close()

    def open(self) -> Transport:
        """Return a transport to a process that was asked nothing yet."""
        return _Asking(self)

    def reply(self, requests: list[bytes], keys: list[bytes], watch: bool = False) -> bytes:
        """Return the reply to the last of the requests. Raises `Ended` where the process ended.

        `keys[n]` tells the first n requests from all others; a process has a second witness from its
        first request on, or never.
        """
        if keys[-1] not in self._replies:
            transport, asked = self._last, len(requests) - 1
            if transport is None or self._asked != keys[-2]:
                if transport is not None:
                    transport.close()
                transport = self._last = self._open()
                asked = 0
            for request, key in zip(requests[asked:], keys[asked + 1 :], strict=True):
                self._replies.setdefault(key, _asked(transport, request, watch))
            self._asked = keys[-1]
        reply = self._replies[keys[-1]]
        if isinstance(reply, Ended):
            raise reply
        return reply


def _asked(transport: Transport, request: bytes, watch: bool) -> bytes | Ended:
    try:
        return transport.ask(request, watch) if watch else transport.ask(request)
    except Ended as ended:
        return ended


class _Asking:
    def __init__(self, once: Once) -> None:
        self._once = once
        self._requests: list[bytes] = []
        self._keys = [b""]

    def ask(self, request: bytes, watch: bool = False) -> bytes:
        self._requests.append(request)
        self._keys.append(hashlib.sha256(self._keys[-1] + bytes([watch]) + request).digest())
        return self._once.reply(self._requests, self._keys, watch)

    def close(self) -> None:
        """The process stays, for others."""
