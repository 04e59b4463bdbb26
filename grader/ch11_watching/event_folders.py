"""Event files built from parts, whole and damaged, and what is to be read from them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from grader.ch11_watching.event_files import (
    VERSION,
    chunk,
    event,
    framed,
    masked,
    scalar,
)

FIRST, SECOND, THIRD = (f"events.out.tfevents.{1_750_000_000 + at}.0" for at in (0, 60, 3600))
TWIN = f"events.out.tfevents.{1_750_000_000}.00"
"""A file of the first one's second, whose name stands between `FIRST` and `SECOND`."""

TIME = 1.75e9


@dataclass(frozen=True)
class Part:
    """Some bytes of a file, and what a reader is to make of them."""

    data: bytes
    text: str
    """As a student is shown it."""
    step: int = 0
    values: tuple[tuple[str, float], ...] = ()
    starts: bool = False
    damage: str = ""

    @property
    def ends_file(self) -> bool:
        """Say whether nothing behind it can be read."""
        return self.damage in ("torn", "length")


Folder = Mapping[str, list[Part]]
"""The parts of each file, by name, in the order in which the files are handed over."""


def float32(value: float) -> float:
    """Return a number as four bytes have it."""
    found: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return found


def version() -> Part:
    """Return a file's first record."""
    return Part(framed(event(TIME, None, b"", VERSION)), "version")


def point(step: int | None, **values: float) -> Part:
    """Return a record of scalars; with None for a step it has none."""
    return scalars(step, values)


def scalars(step: int | None, values: Mapping[str, float]) -> Part:
    """Return a record of scalars under any tags."""
    summary = b"".join(scalar(tag, value) for tag, value in values.items())
    shown = ", ".join(f"{tag} {float32(value)!r}" for tag, value in values.items())
    found = tuple((tag, float32(value)) for tag, value in values.items())
    text = f"{step_in_words(step)}: {shown}"
    return Part(framed(event(TIME, step, summary)), text, step or 0, found)


def start(step: int | None) -> Part:
    """Return a record that says START."""
    return session(step, b"\x08\x01", "START", starts=True)


def session(step: int | None, log: bytes, text: str, starts: bool = False) -> Part:
    """Return a record with a session log."""
    data = framed(event(TIME, step, b"", chunk(7, log)))
    return Part(data, f"{step_in_words(step)}: {text}", step or 0, starts=starts)


def step_in_words(step: int | None) -> str:
    """Return how an event's step is shown."""
    return "no step" if step is None else f"step {step}"


def other(data: bytes, text: str, step: int = 0, **values: float) -> Part:
    """Return a record of these bytes, which say so much."""
    return Part(framed(data), text, step, tuple(values.items()))


def lines(steps: Iterable[int], base: float = 0.0, tag: str = "loss") -> list[Part]:
    """Return a record for each step, whose value is the step, plus `base`."""
    return [scalars(step, {tag: base + step}) for step in steps]


def torn(part: Part, size: int) -> Part:
    """Return the first `size` bytes of a record: the file ends there."""
    text = f"the first {size} of {len(part.data)} bytes of: {part.text}"
    return Part(part.data[:size], text, damage="torn")


def flipped(part: Part, byte: int, bit: int) -> Part:
    """Return a record of which one bit is another; `byte` may count from the end."""
    byte %= len(part.data)
    data = bytearray(part.data)
    data[byte] ^= 1 << bit
    what = "length" if byte < 12 else "data"
    text = f"{part.text}; bit {bit} of the record's byte {byte} flipped"
    return Part(bytes(data), text, damage=what)


def zeros(size: int) -> Part:
    """Return zeros, as a power failure may leave them at the end of a file."""
    return Part(bytes(size), f"{size} zeros", damage="length" if size >= 12 else "torn")


def huge(length: int) -> Part:
    """Return the begin of a record whose length is right by its checksum, and not there."""
    head = struct.pack("<Q", length)
    data = head + struct.pack("<I", masked(head)) + b"\x09\x00\x00"
    return Part(data, f"a length of {length}, its right checksum, 3 bytes", damage="torn")


@dataclass(frozen=True)
class Expected:
    """What is to be read from a folder."""

    curves: dict[str, list[tuple[int, float]]]
    damage: list[tuple[str, int, str]]


def expected(folder: Folder) -> Expected:
    """Return what a folder says: curves without those that have no point, and what is damaged."""
    points: list[tuple[str, int, float]] = []
    damage = []
    for name in sorted(folder):
        at = 0
        for part in folder[name]:
            if part.starts:
                points = [one for one in points if one[1] < part.step]
            points += [(tag, part.step, value) for tag, value in part.values]
            if part.damage:
                damage.append((name, at, part.damage))
            if part.ends_file:
                break
            at += len(part.data)
    curves: dict[str, list[tuple[int, float]]] = {}
    for tag, step, value in points:
        curves.setdefault(tag, []).append((step, value))
    return Expected(curves, damage)


def contents(folder: Folder) -> list[tuple[str, bytes]]:
    """Return (name, content) of each file."""
    return [(name, b"".join(part.data for part in parts)) for name, parts in folder.items()]


def shown(folder: Folder) -> str:
    """Return a folder as a student is shown it: each record with where it begins."""
    text = []
    for name, parts in folder.items():
        text.append(name if parts else f"{name}: empty")
        at = 0
        for part in parts:
            text.append(f"  {at:>4}  {part.text}")
            at += len(part.data)
    return "\n".join(text)


def without(folder: Folder, damage: str) -> Folder:
    """Return a folder whose files end where this damage begins."""
    found = {}
    for name, parts in folder.items():
        ends = [number for number, part in enumerate(parts) if part.damage == damage]
        found[name] = [replace(part) for part in (parts[: ends[0]] if ends else parts)]
    return found
