"""Checks of `clip`: against the norm of the whole gradients, whole numbers whose squares add up exactly."""

import math

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_holds,
    claimed,
    gate,
    points,
    whole_numbers,
)
from grader.ch10_sharding.placed import PARTIAL, REPLICATE, by_rank, summed

MESH = (2, 2)
ROWS, COLUMNS = ("shard", 0), ("shard", 1)
PLAIN = [
    ((5, 4), (ROWS, COLUMNS)),
    ((3,), (ROWS, REPLICATE)),
    ((2, 3), (REPLICATE, COLUMNS)),
    ((4,), (REPLICATE, REPLICATE)),
    ((6, 2), (ROWS, ROWS)),
]
"""Shapes of gradients and their placements, none of them partial."""

SUMS = [
    ((4,), (ROWS, PARTIAL)),
    ((3, 3), (PARTIAL, COLUMNS)),
    ((2,), (PARTIAL, PARTIAL)),
    ((5,), (REPLICATE, PARTIAL)),
    ((3, 2), (ROWS, COLUMNS)),
]
"""The same, most of them partial."""

LARGE = 1e6


def drawn(rng, kinds, mesh=MESH, limit=LARGE, dtype=torch.float64):
    """Return whole gradients, and the case that a probe takes: shards by rank, placements, limit."""
    wholes = [whole_numbers(rng, shape, -20, 20, dtype=dtype) for shape, _ in kinds]
    placements = [where for _, where in kinds]
    return wholes, [by_rank(rng, wholes, placements, mesh), placements, limit]


def norm_of(wholes):
    return math.sqrt(sum(float(whole.double().square().sum()) for whole in wholes))


@pytest.fixture
def shape():
    return MESH


@pytest.fixture
def plain(rng):
    return drawn(rng, PLAIN)


@pytest.fixture
def cases(plain):
    return [plain[1]]


def compare(found, number, drawn, mesh, rtol=1e-12):
    """Compare norms and gradients of a case with those that one process has."""
    wholes, (_, placements, limit) = drawn
    norm = norm_of(wholes)
    factor = limit / norm if norm > limit else 1.0
    for rank, of_rank in enumerate(found):
        got = of_rank[number]
        rows = (("on", f"rank {rank} of a mesh {mesh}, limit {limit:g}"),)
        if type(got["norm"]) is not float:
            raise Mismatch("The norm is no `float`.", rows)
        if not math.isclose(got["norm"], norm, rel_tol=rtol):
            shown = (*rows, ("expected", f"{norm:.10g}"), ("got", f"{got['norm']:.10g}"))
            raise Mismatch("The norm of all gradients.", shown)
    right = by_rank(None, [whole * factor for whole in wholes], list(map(summed, placements)), mesh)
    for rank, of_rank in enumerate(found):
        for at, (mine, where) in enumerate(zip(of_rank[number]["grads"], placements, strict=True)):
            rows = (("on", f"rank {rank} of a mesh {mesh}, limit {limit:g}, norm {norm:.6g}"),)
            with about(*rows, of=f"Gradient {at}, placed {where}. "):
                because = "one product of each element"
                assert_close(mine, right[rank][at], rtol=rtol, atol=0, because=because)


def same_everywhere(found, number):
    norms = [of_rank[number]["norm"].hex() for of_rank in found]
    assert_equal(norms, norms[:1] * len(norms), "The bits of the norm by rank.")


@gate
def test_number(clipped):
    """Returns a `float` on every rank, and it is not 0."""
    for rank, [got] in enumerate(clipped.value):
        good = type(got["norm"]) is float and got["norm"] != 0
        assert_holds(good, f"Rank {rank} returns no `float`, or 0.", ("got", repr(got["norm"])))


@points(2)
def test_norm(clipped, plain, shape):
    """Shards and copies on a mesh (2, 2): each element of a gradient counts once."""
    compare(clipped.value, 0, plain, shape)
    same_everywhere(clipped.value, 0)


@points(2)
def test_partial(clipped, shape, rng):
    """Partial gradients are summed, in place, before they are squared."""
    sums = drawn(rng, SUMS)
    found = clipped.ask(shape, [sums[1]]).value
    compare(found, 0, sums, shape)
    same_everywhere(found, 0)


def test_scaled(clipped, shape, rng):
    """Gradients are scaled if the norm is larger than the limit, and only then."""
    for kinds in (PLAIN, SUMS):
        wholes, (shards, placements, _) = drawn(rng, kinds)
        norm = norm_of(wholes)
        limits = (norm / 3, norm, norm * 2)
        drawings = [(wholes, [shards, placements, limit]) for limit in limits]
        zeros, kept = [whole * 0 for whole in wholes], list(map(summed, placements))
        drawings.append((zeros, [by_rank(None, zeros, kept, shape), kept, 1.0]))
        found = clipped.ask(shape, [case for _, case in drawings]).value
        for number, drawing in enumerate(drawings):
            compare(found, number, drawing, shape)


def test_other_meshes(clipped, rng):
    """A rank whose shards are all empty; a dimension of size 1; nothing sharded at all."""
    for mesh, kinds in (
        ((3,), [((2, 2), (ROWS,)), ((1,), (ROWS,))]),
        ((1, 3), [((2, 2), (ROWS, ROWS)), ((7,), (ROWS, REPLICATE)), ((2,), (PARTIAL, ROWS))]),
        ((2,), [((3,), (REPLICATE,)), ((2,), (PARTIAL,))]),
    ):
        drawings = [drawn(rng, kinds, mesh, limit) for limit in (LARGE, 2.0)]
        found = clipped.ask(mesh, [case for _, case in drawings]).value
        for number, drawing in enumerate(drawings):
            compare(found, number, drawing, mesh)
            same_everywhere(found, number)


def test_narrow(clipped, shape, rng):
    """Squares are added up in `float64`: `float16` beyond 256 and a large `float32` beside small ones."""
    half = [(whole * 300).half() for whole in drawn(rng, PLAIN)[0]]
    large = [whole.float() for whole in drawn(rng, PLAIN)[0]]
    large[3][:2] = 3e4
    placements = [where for _, where in PLAIN]
    for wholes in (half, large):
        case = [by_rank(None, wholes, placements, shape), placements, LARGE]
        found = clipped.ask(shape, [case]).value
        compare(found, 0, (wholes, case), shape, rtol=1e-9)


def test_not_finite(clipped, shape, rng):
    """A NaN or an infinity on one rank is heard by all, and gradients stay as they are."""
    for bad in (math.nan, math.inf):
        wholes, (shards, placements, _) = drawn(rng, PLAIN)
        wholes[0][4, 3] = bad
        shards = by_rank(None, wholes, placements, shape)
        for rank, [got] in enumerate(clipped.ask(shape, [[shards, placements, 1.0]]).value):
            rows = (("on", f"one element on the last rank is {bad}"), ("got", repr(got["norm"])))
            what = f"The norm on rank {rank} is not {bad}."
            assert_holds(repr(got["norm"]) == repr(bad), what, *rows)
            for at, (mine, before) in enumerate(zip(got["grads"], shards[rank], strict=True)):
                same = torch.equal(mine.nan_to_num(1e9, 2e9), before.nan_to_num(1e9, 2e9))
                assert_holds(same, f"Gradient {at} of rank {rank} was changed.", *rows[:1])


@claimed
def test_traffic(clipped, plain, shape, rng):
    """One small all_reduce for each dimension that something is sharded along, and no other."""
    compare(clipped.value, 0, plain, shape)
    flat = drawn(rng, [((4,), (ROWS, REPLICATE)), ((2,), (REPLICATE, REPLICATE))])
    sums = drawn(rng, SUMS)
    found = clipped.ask(shape, [flat[1], sums[1]]).value
    partial = sum(where.count(PARTIAL) for _, where in SUMS)
    for words, said, most, small in (
        ("shards along both dimensions", [one[0]["said"] for one in clipped.value], 2, True),
        ("shards along the first dimension only", [one[0]["said"] for one in found], 1, True),
        (f"{partial} partial sums", [one[1]["said"] for one in found], partial + 2, False),
    ):
        for rank, events in enumerate(said):
            rows = (("on", f"rank {rank}, {words}"), ("got", repr(events)))
            others = {name for name, _ in events} - {"all_reduce"}
            assert_holds(not others, "A call that is no all_reduce.", *rows)
            what = f"More than {most} all_reduces."
            assert_holds(len(events) <= most, what, *rows)
            if small:
                longest = max((size for _, size in events), default=0)
                assert_holds(longest <= 64, "An all_reduce of more than 64 bytes.", *rows)
