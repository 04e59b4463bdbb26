"""Checks of `read_events`: files put together from parts, of which it is known what they say."""

import pytest

from grader import Mismatch, about, assert_equal, gate, points, python_random
from grader.ch11_watching.event_cases import (
    folders_in_disorder,
    folders_of_fields,
    folders_of_numbers,
    folders_with_bad_data,
    folders_with_bad_lengths,
    other_sessions,
    plain_folders,
    restarts,
    torn_folders,
)
from grader.ch11_watching.event_folders import contents, expected, shown


@pytest.fixture
def draw(rng):
    return python_random(rng)


def compare(events_read, folders, same):
    """Hand over folders; `same(expected, got)` compares what is to be read with what was."""
    got = events_read.ask([contents(folder) for folder in folders]).value
    for folder, one in zip(folders, got, strict=True):
        with about(("files", shown(folder))):
            if one is None:
                raise Mismatch("`read_events` returned no `Reading`.")
            same(expected(folder), one)


def same_curves(right, got):
    curves = {tag: curve for tag, curve in got["curves"].items() if curve}
    assert_equal(sorted(curves), sorted(right.curves), "The tags that have points.")
    for tag, curve in right.curves.items():
        what = f"The curve of {tag if len(tag) < 30 else tag[:9] + '…'}: (step, value)."
        assert_equal(as_text(curves.get(tag, [])), as_text(curve), what)


def same_damage(right, got):
    assert_equal(got["damage"], right.damage, "The damage: (file, at, what).")


def as_text(curve):
    """Return points whose values tell NaNs, infinities and zeros apart."""
    return [(step, repr(value)) for step, value in curve]


@gate
def test_one_file(events_read):
    """Reads the scalars of one file that is whole: (step, value) by tag."""
    compare(events_read, plain_folders(), same_curves)


def test_values_and_steps(events_read, draw):
    """Any value and any step, as they are in the file, in the order in which they are there."""
    compare(events_read, folders_of_numbers(draw), same_curves)


def test_other_fields(events_read):
    """Fields stand in any order, among others; a `Value` without a `simple_value` is no point."""
    compare(events_read, folders_of_fields(), same_curves)


def test_order_of_files(events_read):
    """Files are read in the order of their names; without START all points stay."""
    compare(events_read, folders_in_disorder(), same_curves)


@points(2)
def test_torn(events_read, draw):
    """Wherever a file ends: all whole records are read, and the files behind it."""
    compare(events_read, torn_folders(draw), same_curves)


@points(2)
def test_bad_data(events_read, draw):
    """A record whose data have a wrong checksum says nothing; the next one is read."""
    compare(events_read, folders_with_bad_data(draw), same_curves)


def test_bad_length(events_read, draw):
    """Behind a length whose checksum is wrong nothing of the file is read; the next file is."""
    compare(events_read, folders_with_bad_lengths(draw), same_curves)


@points(2)
def test_restarts(events_read, draw):
    """START makes void what was read before it, from its step on, and nothing else does."""
    compare(events_read, [*restarts(draw), *other_sessions()], same_curves)


@points(2)
def test_damage(events_read, draw):
    """`damage` says of each record that cannot be read where it is, and what is wrong."""
    folders = [
        *plain_folders(),
        *torn_folders(draw),
        *folders_with_bad_data(draw),
        *folders_with_bad_lengths(draw),
    ]
    compare(events_read, folders, same_damage)
