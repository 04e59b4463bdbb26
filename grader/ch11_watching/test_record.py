"""Checks of `record`: each part of the frame, against our own checksum."""

import struct

import pytest

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_holds,
    compared,
    gate,
    points,
    python_random,
)
from grader.ch11_watching.event_files import framed, masked

NINE = b"123456789"


@pytest.fixture
def messages(rng):
    """Random messages, short ones first: none, one byte, and lengths of more than one byte."""
    random = python_random(rng)
    sizes = [0, 1, 2, 9, 26, *sorted(random.sample(range(30, 255), 3)), 256, 300]
    return [random.randbytes(size) for size in sizes]


def shown(message):
    return f"record({message!r})" if len(message) < 30 else f"record(<{len(message)} bytes>)"


def compare(framed_records, messages, same):
    """Each record has the right size; `same(record, message)` compares a part of it."""
    got = framed_records.ask(messages).value
    for message, one in zip(messages, got, strict=True):
        with about(("on", shown(message))):
            if not isinstance(one, bytes):
                raise Mismatch(f"Expected bytes, got {type(one).__name__}.")
            what = "How many bytes the record has: 8, 4, those of the data, 4."
            assert_equal(len(one), len(message) + 16, what)
            same(one, message)


@gate
def test_parts(framed_records, messages):
    """Returns bytes: 16 more than the data, which stand from byte 12 on."""

    def same(one, message):
        assert_equal(one[12:-4].hex(" "), message.hex(" "), "Bytes 12 to 4 before the end.")

    compare(framed_records, [NINE, *messages], same)


def test_length(framed_records, messages):
    """Begins with the length of the data, in eight bytes, the lowest first."""

    def same(one, message):
        expected = struct.pack("<Q", len(message))
        assert_equal(one[:8].hex(" "), expected.hex(" "), "The first eight bytes.")

    compare(framed_records, [NINE, *messages], same)


@points(2)
def test_data_checksum(framed_records, messages):
    """Ends with the masked CRC-32C of the data."""

    def same(one, message):
        same_checksum(one[-4:], masked(message), "The last four bytes.")

    compare(framed_records, [NINE, *messages], same)


def test_length_checksum(framed_records, messages):
    """The length has a checksum of its own: of its eight bytes, as they stand there."""

    def same(one, message):
        same_checksum(one[8:12], masked(one[:8]), "The checksum of the first eight bytes.")

    compare(framed_records, [NINE, *messages], same)


def same_checksum(got, expected, what):
    assert_equal(got.hex(" "), struct.pack("<I", expected).hex(" "), what)


def test_written_by_torch(framed_records):
    """A record of PyTorch's own `SummaryWriter` comes out as it was."""
    data = bytes.fromhex("09e7f0c73596c1da4110032a0d0a0b0a046c6f7373150000c03f")

    def same(one, message):
        compared(one, framed(message))
        assert_holds(one == framed(message), "The record is not that of `SummaryWriter`.")

    compare(framed_records, [data], same)
