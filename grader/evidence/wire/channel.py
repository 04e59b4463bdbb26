"""Frames on a socket: eight bytes of length, then that many bytes. Both ends refuse more than a cap."""

from __future__ import annotations

import socket
import struct
import time
from typing import Protocol

FRAME_LIMIT = 64 * 2**20
"""Largest frame in bytes: room for sixteen million float32, small enough to hold a few in memory."""

_LENGTH = struct.Struct(">Q")


class ChannelError(Exception):
    """The other end closed the channel, sent too much, or sent nothing in time."""


class ChannelTimeout(ChannelError):
    """Nothing came before the deadline."""


class FrameTooLarge(ChannelError):
    """The other end announced more than a frame may hold."""


class Transport(Protocol):
    """Carries requests to the process that holds the student's code and brings replies back."""

    def ask(self, request: bytes, watch: bool = False) -> bytes:
        """Send one request, return its reply. Raises `Ended` when the process is gone.

        watch: the process has a second witness, and what that one saw comes with the reply (see
            `grader.evidence.record`)
        """
        ...

    def close(self) -> None:
        """End the process and everything it started."""
        ...


def send_frame(sock: socket.socket, payload: bytes, descriptor: int | None = None) -> None:
    """Send `payload` as one frame, on a Unix socket together with an open file."""
    if len(payload) > FRAME_LIMIT:
        raise FrameTooLarge(f"a frame of {len(payload)} bytes is over the limit of {FRAME_LIMIT}")
    head = _LENGTH.pack(len(payload))
    if descriptor is not None:
        head = head[socket.send_fds(sock, [head], [descriptor]) :]
    sock.sendall(head + payload)


def receive_frame(sock: socket.socket, deadline: float | None = None) -> bytes:
    """Return the next frame; `deadline` is a `time.monotonic()` moment, None waits for ever."""
    (length,) = _LENGTH.unpack(_receive_exactly(sock, _LENGTH.size, deadline))
    if length > FRAME_LIMIT:
        raise FrameTooLarge(f"a frame of {length} bytes is over the limit of {FRAME_LIMIT}")
    return _receive_exactly(sock, length, deadline)


def receive_frame_and_file(sock: socket.socket) -> tuple[bytes, int | None]:
    """Return the next frame on a Unix socket, and the descriptor of the file that came with it."""
    try:
        head, descriptors, _, _ = socket.recv_fds(sock, 1, 1)
    except OSError as error:
        raise ChannelError(str(error)) from None
    if not head:
        raise ChannelError("the channel was closed")
    (length,) = _LENGTH.unpack(head + _receive_exactly(sock, _LENGTH.size - 1, None))
    if length > FRAME_LIMIT:
        raise FrameTooLarge(f"a frame of {length} bytes is over the limit of {FRAME_LIMIT}")
    return _receive_exactly(sock, length, None), descriptors[0] if descriptors else None


def _receive_exactly(sock: socket.socket, count: int, deadline: float | None) -> bytes:
    received = bytearray()
    while len(received) < count:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise ChannelTimeout("nothing came in time")
            sock.settimeout(left)
        try:
            part = sock.recv(min(count - len(received), 2**20))
        except TimeoutError:
            raise ChannelTimeout("nothing came in time") from None
        except OSError as error:
            raise ChannelError(str(error)) from None
        if not part:
            raise ChannelError("the channel was closed")
        received += part
    return bytes(received)
