"""Checks of `sharded_stream`: every rank of a small world, with and without real workers."""

import pytest

from grader import about, assert_equal, assert_holds, compared, draw_one, gate, points

EVEN = {"drop_uneven": True}
ANYTHING = [None, 0, "", None, False, 1.5, None]


@pytest.fixture
def length(rng):
    """A length that neither 2, 3 nor their products divide."""
    return draw_one(rng, (23, 25, 29, 31, 35))


def rank_items(length, rank, world_size):
    return list(range(rank, length, world_size))


def rank_batches(items, batch_size):
    return [items[first : first + batch_size] for first in range(0, len(items), batch_size)]


def same(got, expected, items, world_size, batch_size, options=None, workers=0):
    """Compare each rank's share; of the first that differs, show all of it."""
    compared(got)
    more = "".join(f", {name}={value}" for name, value in (options or {}).items())
    call = f"sharded_stream({items}, rank, {world_size}, {batch_size}{more})"
    rows = [("call", call)]
    if workers:
        rows.append(("loader", f"DataLoader(..., batch_size={batch_size}, num_workers={workers})"))
    what = "the batches, each with the worker it came from" if workers else "the items"
    with about(*rows):
        for rank, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
            assert_equal(mine, theirs, f"Rank {rank}: {what}.")


@gate
def test_alone(shares, length):
    """One rank without workers takes everything, in order."""
    got = shares.ask(length, 1, 4, {}).value
    same(got, [list(range(length))], f"range({length})", 1, 4)


def test_ranks(shares, shares_of, length):
    """Item i belongs to rank i % world_size, for streams of every length and of anything."""
    for world_size in (2, 3, 5):
        for count in (length, world_size, world_size - 1, 1, 0):
            got = shares.ask(count, world_size, 2, {}).value
            expected = [rank_items(count, rank, world_size) for rank in range(world_size)]
            same(got, expected, f"range({count})", world_size, 2)
    got = shares_of.ask(ANYTHING, 2, {}).value
    same(got, [ANYTHING[::2], ANYTHING[1::2]], ANYTHING, 2, 2)


@points(3)
def test_workers_in_turn(shares_loaded, length):
    """A rank's batches come out as without workers: batch k from worker k % num_workers."""
    for world_size, batch_size, workers in ((2, 3, 2), (1, 1, 2), (1, 4, 3)):
        got = shares_loaded.ask(length, world_size, batch_size, workers, {}).value
        expected = []
        for rank in range(world_size):
            batches = rank_batches(rank_items(length, rank, world_size), batch_size)
            expected.append([(batch, k % workers) for k, batch in enumerate(batches)])
        same(got, expected, f"range({length})", world_size, batch_size, workers=workers)


def test_few(shares_loaded):
    """More workers than batches, more ranks than items: each item comes once."""
    got = shares_loaded.ask(3, 2, 2, 3, {}).value
    same(got, [[([0, 2], 0)], [([1], 0)]], "range(3)", 2, 2, workers=3)


def test_drop_uneven(shares, shares_of, shares_loaded, length):
    """With `drop_uneven` every rank gets as many, and only an incomplete last round is lost."""
    for world_size in (2, 3, 4):
        # 11: of 2 ranks each has a short last batch, and one item begins a round
        for count in (11, length, length + 1, 12, 2, 0):
            got = shares.ask(count, world_size, 2, EVEN).value
            whole = count // world_size * world_size
            expected = [rank_items(whole, rank, world_size) for rank in range(world_size)]
            same(got, expected, f"range({count})", world_size, 2, EVEN)
    for last in (6, 7):  # without a short last round, and with one
        some = ANYTHING[:last]
        got = shares_of.ask(some, 2, EVEN).value
        same(got, [some[0:6:2], some[1:6:2]], some, 2, 2, EVEN)
    got = shares_loaded.ask(11, 2, 2, 2, EVEN).value
    expected = [
        [(batch, k % 2) for k, batch in enumerate(rank_batches(rank_items(10, rank, 2), 2))]
        for rank in range(2)
    ]
    same(got, expected, "range(11)", 2, 2, EVEN, workers=2)


def test_endless(share_of_endless):
    """An endless stream is read as it is needed."""
    for rank, options in ((0, {}), (2, EVEN)):
        got = share_of_endless.ask(rank, 3, 2, options, 20).value
        what = f"The first 20 items of rank {rank} of 3, of an endless stream."
        assert_equal(got["items"], list(range(rank, 60, 3)), what)
        most = 60 + 2 * 6  # whoever reads a batch or a round ahead is right, too
        rows = ("expected", f"{most} items at most, for 20 of its own"), ("got", str(got["read"]))
        assert_holds(got["read"] <= most, "The stream is read further than needed.", *rows)
