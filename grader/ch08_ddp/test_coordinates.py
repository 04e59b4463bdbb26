"""Checks of `coordinates`: the place of each rank, and each group seen from all of its members."""

from itertools import product
from math import prod

import pytest

from grader import assert_equal, gate, points

WORDS = {
    "coordinate": "the coordinates",
    "members": "the ranks of its groups",
    "reached": "the ranks that an all-reduce in each of its groups reached",
    "rank in group": "its rank in each of its groups",
}
"""What the probe's results are, in a message."""

FLAT, MESHES = [(4,)], [(2, 3), (3, 2)]
WITH_ONES = [(1, 2, 1, 2), (2, 2), (4, 1)]


@pytest.fixture
def world_size():
    return 6


@pytest.fixture
def shapes():
    return MESHES


def lines(shape):
    """Return, by rank, its coordinates and the ranks along each dimension."""
    places = list(product(*map(range, shape)))
    return [
        (
            me,
            [
                [
                    rank
                    for rank, other in enumerate(places)
                    if all(a == b for i, (a, b) in enumerate(zip(me, other, strict=True)) if i != d)
                ]
                for d in range(len(shape))
            ],
        )
        for me in places
    ]


def compare(placed, shapes, key, expected_of):
    got = placed.ask(prod(shapes[0]), shapes).value
    for number, shape in enumerate(shapes):
        for rank, (place, members) in enumerate(lines(shape)):
            assert_equal(
                got[rank][number][key],
                expected_of(place, members),
                f"`coordinates({shape})` on rank {rank}: {WORDS[key]}.",
            )


@gate
def test_kind(placed):
    """In a mesh of one dimension, all ranks in a row and in one group."""
    for rank, [found] in enumerate(placed.ask(4, FLAT).value):
        assert_equal(type(found["coordinate"]).__name__, "tuple", "The type of the coordinates.")
        where = f"`coordinates((4,))` on rank {rank}"
        assert_equal(found["coordinate"], (rank,), f"{where}: the coordinates.")
        assert_equal(found["members"], [[0, 1, 2, 3]], f"{where}: the ranks of its groups.")


def test_coordinates(placed):
    """Coordinates in two dimensions: the last one runs fastest."""
    compare(placed, MESHES, "coordinate", lambda place, members: place)


@points(2)
def test_members(placed):
    """The group along a dimension: ranks that differ in this coordinate only."""
    compare(placed, MESHES, "members", lambda place, members: members)


def test_reached(placed):
    """A collective in each group reaches its ranks and no others."""
    compare(placed, MESHES, "reached", lambda place, members: members)


def test_ones(placed):
    """More dimensions, some of size 1: coordinates and groups."""
    compare(placed, WITH_ONES, "coordinate", lambda place, members: place)
    compare(placed, WITH_ONES, "members", lambda place, members: members)


def test_rank_in_group(placed):
    """A rank's number in its group is its coordinate."""
    compare(placed, WITH_ONES, "rank in group", lambda place, members: list(place))
    compare(placed, MESHES, "rank in group", lambda place, members: list(place))
