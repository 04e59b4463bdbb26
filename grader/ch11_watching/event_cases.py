"""Folders of event files that checks of `read_events` hand over, by what they are about."""

from __future__ import annotations

import random
import struct

from grader.ch11_watching.event_files import chunk, event, varint
from grader.ch11_watching.event_folders import (
    FIRST,
    SECOND,
    THIRD,
    TIME,
    TWIN,
    Folder,
    flipped,
    huge,
    lines,
    other,
    point,
    scalars,
    session,
    start,
    torn,
    version,
    zeros,
)


def all_folders(draw: random.Random) -> list[Folder]:
    """Return what all checks hand over."""
    return [
        *plain_folders(),
        *folders_of_numbers(draw),
        *folders_of_fields(),
        *folders_in_disorder(),
        *torn_folders(draw),
        *folders_with_bad_data(draw),
        *folders_with_bad_lengths(draw),
        *restarts(draw),
        *other_sessions(),
    ]


def plain_folders() -> list[Folder]:
    """Return one file that is whole."""
    return [
        {FIRST: [version(), point(1, loss=1.5), point(2, loss=0.25, lr=2.0), point(3, loss=8.0)]}
    ]


def folders_of_numbers(draw: random.Random) -> list[Folder]:
    """Return values and steps of all kinds."""
    tags = {"größe": 1.0, "损失/训练": 2.0, "x" * 130: 3.0}
    values = {f"layer{at}/norm": draw.uniform(-9, 9) for at in range(3)}
    odd = {"nan": float("nan"), "inf": float("inf"), "minus": float("-inf"), "zero": -0.0}
    unsorted = lines([7, 3, 3, 5, 7])
    large = lines([0, 127, 128, 2**40 + draw.randint(0, 99), 2**62, -1, -300, -(2**40), -(2**63)])
    nans = [point(step, loss=value) for step, value in enumerate([1.0, float("nan"), 2.0])]
    return [
        {FIRST: [version(), scalars(1, values), scalars(2, odd), scalars(3, tags)]},
        {FIRST: [version(), *nans]},
        {FIRST: [version(), *unsorted]},
        {FIRST: [version(), *large]},
        {FIRST: [version(), point(None, loss=1.0), point(1, loss=2.0), point(None, loss=3.0)]},
    ]


def folders_of_fields() -> list[Folder]:
    """Return messages with fields in another order, and fields that no table names."""
    tag, number = chunk(1, b"loss"), b"\x15" + struct.pack("<f", 2.5)
    time = b"\x09" + struct.pack("<d", TIME)
    histogram = chunk(1, chunk(1, b"weights") + chunk(5, struct.pack("<Bd", 9, 1.0)))
    noted = chunk(7, b"node") + chunk(9, chunk(2, b"a name"))
    unknown = b"".join(
        [
            varint(20 << 3) + varint(300),
            varint(21 << 3 | 1) + bytes(range(8)),
            varint(22 << 3 | 5) + b"abcd",
            varint(300 << 3 | 2) + varint(130) + bytes(130),
        ]
    )
    turned = chunk(5, chunk(1, number + tag)) + b"\x10\x07" + time
    among = time + b"\x10\x05" + unknown + chunk(5, unknown + chunk(1, unknown + tag + number))
    return [
        {FIRST: [version(), other(turned, "step 7: loss 2.5; fields in reverse", 7, loss=2.5)]},
        {
            FIRST: [
                version(),
                other(
                    event(TIME, 4, histogram + chunk(1, tag + number + noted) + histogram),
                    "step 4: a histogram `weights`, loss 2.5 with a description, the same histogram",
                    4,
                    loss=2.5,
                ),
                other(
                    event(TIME, 5, chunk(1, tag)), "step 5: a Value that has the tag `loss` alone"
                ),
                other(event(TIME, 6), "step 6, and nothing else"),
                other(event(TIME, 7, b"", chunk(6, b"\x12\x02hi")), "step 7: a log message"),
            ]
        },
        {
            FIRST: [
                version(),
                other(among, "step 5: loss 2.5, unknown fields in each message", 5, loss=2.5),
            ]
        },
    ]


def folders_in_disorder() -> list[Folder]:
    """Return files of several runs, none of which says START, handed over in another order."""
    first, twin = [version(), *lines([0, 1, 2])], [version(), *lines([1, 2], 100)]
    second = [version(), *lines([2, 3], 200)]
    third = [version(), *lines([3, 0], 300)]
    return [
        {SECOND: second, FIRST: first},
        {THIRD: third, FIRST: first, SECOND: second},
        {TWIN: twin, SECOND: second, FIRST: first},
        {SECOND: [version(), *lines([0, 1])], FIRST: [version(), *lines([5, 6], 100)]},
    ]


def torn_folders(draw: random.Random) -> list[Folder]:
    """Return files that end within a record, at each of its bytes, and others behind them."""
    whole = [version(), point(1, loss=1.5), point(2, loss=2.5)]
    last = draw.choice([point(3, loss=3.5), point(3, lr=0.5)])
    later = [version(), point(4, loss=4.5)]
    sizes = range(1, len(last.data))
    within = [{FIRST: [*whole, torn(last, size)], SECOND: later} for size in sizes]
    begin = draw.randint(1, len(whole[0].data) - 1)
    return [
        *within,
        {FIRST: [*whole, last], SECOND: [version(), torn(last, draw.choice(sizes))]},
        {FIRST: [torn(version(), begin)], SECOND: later},
        {FIRST: [], SECOND: later},
        {FIRST: whole, SECOND: [version(), torn(start(1), 30)], THIRD: later},
        {FIRST: [*whole, zeros(draw.randint(1, 11))], SECOND: later},
        {FIRST: [*whole, huge(2**62)], SECOND: later},
        {FIRST: [*whole, huge(2**64 - 1)], SECOND: later},
    ]


def folders_with_bad_data(draw: random.Random) -> list[Folder]:
    """Return files in which the data of records, or their checksum, are not what was written."""
    before, after = [version(), point(1, loss=1.5)], [point(3, loss=3.5), point(4, lr=4.5)]
    record = point(2, loss=2.5)
    places = [*draw.sample(range(12, len(record.data) - 4), 3), -5, -4, -1]
    bad = [flipped(record, place, draw.randint(0, 7)) for place in places]
    later = [version(), *lines([5, 6])]
    return [
        *({FIRST: [*before, one, *after]} for one in bad),
        {FIRST: [*before, *bad[:2], *after, bad[2]], SECOND: later},
        {FIRST: [flipped(version(), 20, 3), *after], SECOND: later},
        {FIRST: [*before, *after], SECOND: [version(), flipped(start(1), 22, 0), *lines([2, 3])]},
    ]


def folders_with_bad_lengths(draw: random.Random) -> list[Folder]:
    """Return files in which a length, or its checksum, is not what was written."""
    before, after = [version(), point(1, loss=1.5)], [point(3, loss=3.5), point(4, lr=4.5)]
    record = point(2, loss=2.5)
    places = [(0, 1), (0, 4), (1, 3), (7, 7), (draw.randint(8, 11), draw.randint(0, 7))]
    bad = [flipped(record, byte, bit) for byte, bit in places]
    later = [version(), *lines([5, 6])]
    return [
        *({FIRST: [*before, one, *after], SECOND: later} for one in bad),
        {FIRST: [*before, bad[0], start(0), *after], SECOND: later},
        {FIRST: [*before, *after, zeros(12)], SECOND: later},
        {FIRST: [*before, *after, zeros(draw.randint(13, 90))], SECOND: later},
    ]


def restarts(draw: random.Random) -> list[Folder]:
    """Return runs that were gone on with, in files of their own, and in one."""
    both = [scalars(step, {"loss": step, "lr": -step}) for step in range(10)]
    first = [version(), *both]
    at = draw.randint(3, 7)
    below = [version(), *lines([-3, -2, -1, 0, 1])]
    return [
        {FIRST: first, SECOND: [version(), start(at), *lines(range(at, at + 3), 100)]},
        {
            THIRD: [version(), start(3), *lines([3, 4], 200)],
            SECOND: [version(), start(5), *lines([5, 6, 7], 100)],
            FIRST: first,
        },
        {
            FIRST: first,
            SECOND: [version(), start(2), *lines([2, 3], 100)],
            THIRD: [version(), start(6), *lines([6, 7], 200)],
        },
        {FIRST: [*first, start(5), *lines([5, 6], 100)]},
        {FIRST: [*first, start(5), *lines([8, 3, 5], 100)]},
        {FIRST: first, SECOND: [version(), start(40), *lines([40, 41])]},
        {FIRST: below, SECOND: [version(), start(0), *lines([0, 1], 100)]},
        {FIRST: below, SECOND: [version(), start(None), *lines([5], 100)]},
        {FIRST: below, SECOND: [version(), start(-2), *lines([-2], 100)]},
    ]


def other_sessions() -> list[Folder]:
    """Return session logs that are no START, and STARTs that say more."""
    first = [version(), *lines([0, 1, 2, 3])]
    said = b"\x08\x01" + chunk(3, b"from a checkpoint")
    told = chunk(2, b"a path") + b"\x08\x01"
    return [
        {FIRST: [*first, session(1, b"\x08\x02", "STOP"), *lines([4])]},
        {FIRST: [*first, session(1, b"\x08\x03" + chunk(2, b"path"), "CHECKPOINT"), *lines([4])]},
        {FIRST: [*first, session(1, chunk(3, b"hello"), "a session log without a status")]},
        {FIRST: first, SECOND: [version(), session(2, said, "START, with a message", starts=True)]},
        {FIRST: first, SECOND: [version(), session(2, told, "a path, START", starts=True)]},
    ]
