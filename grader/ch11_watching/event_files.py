"""TensorBoard's event files on the grader's side: what bytes say, strictly, and bytes that say it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

POLYNOMIAL = 0x82F63B78
"""Castagnoli's, its bits in reverse order (RFC 3720, appendix B.4)."""


def _entry(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
    return byte


TABLE = [_entry(byte) for byte in range(256)]


def crc32c(data: bytes) -> int:
    """Return CRC-32C of bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    """Return the checksum as a record has it: rotated right by 15 bits, plus a constant."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def framed(data: bytes) -> bytes:
    """Return the record of `data`."""
    length = struct.pack("<Q", len(data))
    return b"".join(
        [length, struct.pack("<I", masked(length)), data, struct.pack("<I", masked(data))]
    )


def varint(number: int) -> bytes:
    """Return a whole number as protobuf writes an int64: seven bits a byte, the lowest first."""
    number &= 2**64 - 1
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def chunk(number: int, data: bytes) -> bytes:
    """Return a field that holds bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def scalar(tag: str, value: float) -> bytes:
    """Return one `Summary.Value`."""
    return chunk(1, chunk(1, tag.encode()) + varint(2 << 3 | 5) + struct.pack("<f", value))


def event(
    wall_time: float, step: int | None = None, summary: bytes = b"", rest: bytes = b""
) -> bytes:
    """Return one `Event`; `rest` are further fields as they are."""
    found = b"\x09" + struct.pack("<d", wall_time)
    if step is not None:
        found += b"\x10" + varint(step)
    return found + rest + (chunk(5, summary) if summary else b"")


VERSION = chunk(3, b"brain.Event:2")
START = chunk(7, b"\x08\x01")


class Malformed(Exception):
    """Bytes are not what they should be; the message says where and what."""


@dataclass
class Event:
    """What one record says; None where a field is not there."""

    wall_time: float | None = None
    step: int | None = None
    version: str | None = None
    start: bool = False
    values: list[tuple[str, float | None]] = field(default_factory=list)
    fields: list[int] = field(default_factory=list)  # numbers of the fields, in order


def records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, bytes) of each record. Raises `Malformed`."""
    at, number = 0, 0
    while at < len(data):
        number += 1
        where = f"Record {number}, from byte {at} of {len(data)}: "
        if len(data) - at < 12:
            raise Malformed(f"{where}the file ends within its first 12 bytes.")
        (length,) = struct.unpack_from("<Q", data, at)
        if struct.unpack_from("<I", data, at + 8)[0] != masked(data[at : at + 8]):
            raise Malformed(f"{where}the checksum of its length, {length}, is not right.")
        if at + 16 + length > len(data):
            raise Malformed(f"{where}its length is {length}, and the file ends before.")
        inner = data[at + 12 : at + 12 + length]
        if struct.unpack_from("<I", data, at + 12 + length)[0] != masked(inner):
            raise Malformed(f"{where}the checksum of its {length} bytes of data is not right.")
        yield at, inner
        at += 16 + length


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Yield (number, wire type, value) of a protobuf message. Raises `Malformed`."""
    at = 0
    while at < len(data):
        key, at = _varint_at(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint_at(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = _take(data, at, size, number)
        elif wire == 2:
            size, at = _varint_at(data, at)
            value, at = _take(data, at, size, number)
        else:
            raise Malformed(f"A field has the number {number} and the wire type {wire}.")
        yield number, wire, value


def _take(data: bytes, at: int, size: int, number: int) -> tuple[bytes, int]:
    if at + size > len(data):
        raise Malformed(f"Field {number} has {size} bytes, and its message ends before.")
    return data[at : at + size], at + size


def _varint_at(data: bytes, at: int) -> tuple[int, int]:
    found, shift = 0, 0
    while True:
        if at >= len(data):
            raise Malformed("A message ends within a varint.")
        found |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return found & (2**64 - 1), at
        if shift > 63:
            raise Malformed("A varint has more than 10 bytes.")


WIRE = {
    "event": {1: 1, 2: 0, 3: 2, 5: 2, 7: 2},
    "summary": {1: 2},
    "value": {1: 2, 2: 5},
}
"""The wire type of each field that may stand in a message."""


def read_event(data: bytes) -> Event:
    """Return the `Event` of a record's data. Raises `Malformed`."""
    found = Event()
    for number, value in _known(data, "event"):
        found.fields.append(number)
        if number == 1:
            (found.wall_time,) = struct.unpack("<d", value)
        elif number == 2:
            found.step = value - 2**64 if value >= 2**63 else value
        elif number == 3:
            found.version = _text(value)
        elif number == 7:
            found.start = list(fields(value)) == [(1, 0, 1)]
        else:
            for _, inner in _known(value, "summary"):
                found.values.append(_value(inner))
    return found


def _value(data: bytes) -> tuple[str, float | None]:
    tag, value = "", None
    for number, inner in _known(data, "value"):
        if number == 1:
            tag = _text(inner)
        else:
            (value,) = struct.unpack("<f", inner)
    return tag, value


def _known(data: bytes, message: str) -> Iterator[tuple[int, Any]]:
    for number, wire, value in fields(data):
        if WIRE[message].get(number) != wire:
            raise Malformed(
                f"A message `{message}` has a field {number} of wire type {wire}: "
                "that is none of those that were asked for."
            )
        yield number, value


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Malformed(f"{data!r} is no UTF-8.") from None


def read_file(data: bytes) -> list[Event]:
    """Return the events of a file. Raises `Malformed`."""
    return [read_event(inner) for _, inner in records(data)]
