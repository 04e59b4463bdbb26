"""Memory in the buffers of sockets: what was sent and nobody has read. It is in no process's size.

The kernel tells of each socket of a network namespace, one that travels inside another included
(sock_diag(7)).
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

_FEW = 32
"""So many sockets need no look at each: with the largest buffers that were seen, 8 MiB, they hold as
much. To go through TCP's table takes 3 ms: it is left out where TCP has no more."""

_ESTIMATE = 2**18
"""What a socket is taken to hold where the kernel does not tell: its buffer, as long as nobody asks
for a larger one."""

_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_REQUEST, _DUMP = 0x1, 0x300
_ERROR, _DONE, _BY_FAMILY = 2, 3, 20
_EVERY = 2**32 - 1
_NETLINK, _SOCK_DIAG = 16, 4
_REPLY_BYTES = 2**16


@dataclass(frozen=True)
class _Kind:
    """How the kernel is asked for sockets of a kind, and where its answer has their memory.

    `skipped` is the length of an answer's own struct, `attribute` the number of the attribute.
    """

    request: bytes
    skipped: int
    attribute: int


def _internet(protocol: int) -> tuple[_Kind, _Kind]:
    """Return the kinds of a protocol, by IPv4 and by IPv6."""
    # struct inet_diag_req_v2 and inet_diag_msg; INET_DIAG_SKMEMINFO is 7, its bit in a request 6
    four, six = (
        _Kind(struct.pack("=BBBBI48x", family, protocol, 1 << 6, 0, _EVERY), 72, 7)
        for family in (socket.AF_INET, socket.AF_INET6)
    )
    return four, six


_TCP = _internet(socket.IPPROTO_TCP)
_OTHERS = (
    # struct unix_diag_req and unix_diag_msg, UDIAG_SHOW_MEMINFO, UNIX_DIAG_MEMINFO
    _Kind(struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, _EVERY, 0, 0x20, 0, 0), 16, 5),
    # struct netlink_diag_req and netlink_diag_msg, NDIAG_SHOW_MEMINFO, NETLINK_DIAG_MEMINFO
    _Kind(struct.pack("=BBHIIII", _NETLINK, 0xFF, 0, 0, 0x1, 0, 0), 28, 0),
    *_internet(socket.IPPROTO_UDP),
)


def buffered(proc: int) -> int:
    """Return the bytes that sockets hold in the network namespace of this process.

    `proc` is a descriptor of a /proc whose process 1 is in that namespace too.
    """
    counts = _counts(proc)
    count = counts.get("sockets", 0)
    if count <= _FEW:
        return 0
    of_tcp = counts.get("TCP", 0) + counts.get("TCP6", 0)
    kinds = (*_OTHERS, *_TCP) if of_tcp > _FEW else _OTHERS
    try:
        with socket.socket(_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as kernel:
            return sum(sum(_held(kernel, kind)) for kind in kinds)
    except OSError:
        return count * _ESTIMATE


def _counts(proc: int) -> dict[str, int]:
    """Return how many sockets there are, in all and by protocol; empty where the kernel does not say."""
    found = {}
    for name in ("1/net/sockstat", "1/net/sockstat6"):
        with suppress(OSError, ValueError):
            descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
            with open(descriptor, encoding="ascii") as file:
                for line in file:  # TCP: inuse 7 orphan 0 …
                    kind, _, number, *_ = line.split()
                    found[kind.rstrip(":")] = int(number)
    return found


def _held(kernel: socket.socket, kind: _Kind) -> Iterator[int]:
    """Yield what each socket of a kind holds. Raises `OSError` where the kernel does not tell."""
    size = _HEADER.size + len(kind.request)
    kernel.send(_HEADER.pack(size, _BY_FAMILY, _REQUEST | _DUMP, 0, 0) + kind.request)
    while True:
        reply = kernel.recv(_REPLY_BYTES)
        while reply:
            length, what, _, _, _ = _HEADER.unpack_from(reply)
            if what == _DONE:
                return
            if what == _ERROR:
                raise OSError("the kernel has no such table")
            yield _memory(reply[_HEADER.size + kind.skipped : length], kind.attribute)
            reply = reply[_aligned(length) :]


def _memory(attributes: bytes, wanted: int) -> int:
    """Return the sum in one socket's attributes."""
    while len(attributes) >= _ATTRIBUTE.size:
        length, number = _ATTRIBUTE.unpack_from(attributes)
        if number == wanted:
            # SK_MEMINFO_*: received, its limit, on its way, its limit, set aside, queued, options, backlog
            numbers: tuple[int, ...] = struct.unpack_from("=8I", attributes, _ATTRIBUTE.size)
            received, _, sent, _, aside, queued, _, backlog = numbers
            return received + max(sent, queued) + aside + backlog
        attributes = attributes[_aligned(length) :]
    return 0


def _aligned(length: int) -> int:
    return (length + 3) & ~3
