"""Checks of `cut`: who has which rows, padded for a collective and put together again."""

import pytest
import torch

from grader import (
    about,
    assert_equal,
    assert_holds,
    assert_same_bits,
    assert_tensor,
    draw_int,
    facts,
    gate,
    points,
    whole_numbers,
)
from grader.ch10_sharding.shards import bounds

SMALL = [(length, ranks) for ranks in range(1, 7) for length in range(18)]
"""Every length up to 17 on up to six ranks."""


@pytest.fixture
def cases():
    return SMALL


def assert_cuts(got, cases):
    for (length, ranks), mine in zip(cases, got, strict=True):
        assert_equal(mine, bounds(length, ranks), f"cut({length}, {ranks})")


@gate
def test_pairs(cuts):
    """Returns one pair of whole numbers for each rank."""
    for (length, ranks), mine in zip(SMALL, cuts.value, strict=True):
        sizes = [_size(pair) for pair in mine] if isinstance(mine, list | tuple) else None
        rows = (("call", f"cut({length}, {ranks})"), ("got", repr(mine)[:200]))
        assert_holds(
            sizes == [2] * ranks, "A list with one pair for each rank is asked for.", *rows
        )


def _size(pair):
    return len(pair) if isinstance(pair, list | tuple) else None


def test_even(cuts, cases):
    """Lengths that are a multiple of the ranks."""
    found = zip(cuts.value, cases, strict=True)
    even = [(got, case) for got, case in found if case[0] % case[1] == 0 and case[0]]
    assert_cuts([got for got, _ in even], [case for _, case in even])


@points(2)
def test_uneven(cuts, cases, rng):
    """All other lengths, 0 among them, and long ones; ranks without a row begin at the length."""
    assert_cuts(cuts.value, cases)
    long = [(draw_int(rng, 2**53, 2**60), draw_int(rng, 3, 9)) for _ in range(20)]
    assert_cuts(cuts.ask(long).value, long)


def shards_of(x, ranks):
    return [x[offset : offset + size] for offset, size in bounds(len(x), ranks)]


def test_padded(padded, rng):
    """A shard is filled up to as many rows as rank 0 has, whatever its other dims and its dtype."""
    cases = []
    for length, ranks, *rest in ((5, 4), (6, 4, 3), (7, 2, 2, 3), (1, 3, 2), (8, 4), (0, 2, 3)):
        dtype = torch.int16 if rest else torch.float64
        x = whole_numbers(rng, (length, *rest), 1, 99, dtype=dtype)
        cases += [(shard, length, ranks) for shard in shards_of(x, ranks)]
    for (shard, length, ranks), got in zip(cases, padded.ask(cases).value, strict=True):
        rows = -(-length // ranks)
        with about(("on", f"pad(<size {tuple(shard.shape)}>, {length}, {ranks})")):
            assert_tensor(got, dtype=shard.dtype, shape=(rows, *shard.shape[1:]))
            right = torch.cat([shard, shard.new_zeros(rows - len(shard), *shard.shape[1:])])
            assert_same_bits(got, right)


def test_joined(joined, rng):
    """What was gathered holds the rows: `join` returns a view of them, and copies nothing."""
    cases, wholes = [], []
    for length, ranks, *rest in ((5, 4), (6, 4, 3), (7, 2, 2, 3), (1, 3, 2), (8, 4), (9, 5, 0)):
        x = whole_numbers(rng, (length, *rest), 1, 99, dtype=torch.int32)
        full = x.new_full((ranks * -(-length // ranks), *rest), 0)
        full[:length] = x
        cases.append((full, length))
        wholes.append(x)
    for (full, length), x, got in zip(cases, wholes, joined.ask(cases).value, strict=True):
        with about(("on", f"join(<size {tuple(full.shape)}>, {length})")):
            rows = got["rows"]
            assert_tensor(rows, dtype=x.dtype, shape=x.shape)
            assert_same_bits(rows, x)
            if x.numel():
                what = "What comes back is a copy, not a view of `gathered`."
                assert_holds(facts(rows).aliases is not None, what)
            size = f"{got['new bytes']} bytes"
            assert_holds(not got["new bytes"], "`join` allocates memory.", ("allocated", size))
