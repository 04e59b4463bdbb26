"""Checks of `Buckets`: the plan, the averages, and when each bucket goes out."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from grader import about, assert_close, assert_equal, assert_holds, claimed, gate, points
from grader.ch08_ddp.probes.buckets import chained, in_turn

ROUNDING = "float64, and float32 for parameters of that dtype"
SQUARE = 9 * 8  # bytes of a float64 (3, 3)


def squares(rng, count):
    return [torch.randn(3, 3, generator=rng, dtype=torch.float64) for _ in range(count)]


@pytest.fixture
def values(rng):
    """Six square matrices: buckets of two of them have room for two."""
    return squares(rng, 6)


@pytest.fixture
def xs(rng):
    """One input for each rank."""
    return squares(rng, 2)


@pytest.fixture
def uses():
    return [list(range(6))] * 2


@pytest.fixture
def capacity():
    return 2 * SQUARE


@pytest.fixture
def turns():
    return 2


@pytest.fixture
def frozen():
    return []


def gradients(values, uses, x, frozen=()):
    """Return the gradients of one rank."""
    parameters = [nn.Parameter(v, requires_grad=n not in frozen) for n, v in enumerate(values)]
    chained(parameters, uses, x).backward()
    return [p.grad for p in parameters]


def compare(found, values, uses, xs, frozen=()):
    for turn in range(len(found[0])):
        alone = [
            gradients(values, use, in_turn(x, turn), frozen)
            for use, x in zip(uses, xs, strict=True)
        ]
        for rank, of_rank in enumerate(found):
            for at in range(len(values)):
                mine = of_rank[turn]["grads"][at]
                if at in frozen:
                    assert_holds(mine is None, f"Parameter {at} is frozen, and has a `.grad`.")
                    continue
                expected = torch.stack([grads[at] for grads in alone]).mean(0)
                rough = 1e-5 if expected.dtype is torch.float32 else 1e-10
                where = f"Rank {rank}, iteration {turn}, `.grad` of parameter {at} after `finish`. "
                with about(of=where):
                    assert_close(mine, expected, rtol=rough, atol=rough, because=ROUNDING)


@gate
def test_runs(bucketed, values, uses, xs):
    """Has a plan, and gradients after `finish`."""
    for of_rank in bucketed.value:
        for grad in of_rank[0]["grads"]:
            assert_equal(tuple(grad.shape), (3, 3), "The shape of a gradient.")


def test_plan(planned, rng):
    """The plan: last parameter first, full buckets, dtypes apart, nothing frozen."""
    shapes = [(3, 3), (20,), (), (3, 3), (2,), (100,), (3,), (0, 4), (3, 3)]
    values = [torch.randn(shape, generator=rng, dtype=torch.float64) for shape in shapes]
    values[3], values[4] = values[3].float(), values[4].float()
    plans = {
        80: [[8, 7], [6], [4, 3], [2], [1], [0]],
        96: [[8, 7, 6], [4, 3], [2], [1], [0]],
        239: [[8, 7, 6], [4, 3], [2, 1], [0]],
        240: [[8, 7, 6], [4, 3], [2, 1, 0]],
        10_000: [[8, 7, 6], [4, 3], [2, 1, 0]],
    }
    got = planned.ask(values, list(plans), [5]).value
    for capacity, plan in zip(plans, got, strict=True):
        sizes = [v.nbytes for v in values]
        what = f"Bytes {sizes}, 3 and 4 are float32, 5 is frozen, capacity {capacity}."
        assert_equal([list(bucket) for bucket in plan], plans[capacity], what)
    for large in (0, 2):
        ones = [values[0], values[1]]
        ones.insert(large, values[5])
        got = planned.ask(ones, [700, 160], []).value
        alone, others = [[large]], [at for at in (2, 1, 0) if at != large]
        for plan, rest in zip(got, ([others], [[at] for at in others]), strict=True):
            expected = alone + rest if large else rest + alone
            what = f"Bytes {[v.nbytes for v in ones]}, capacities 700 and 160."
            assert_equal([list(bucket) for bucket in plan], expected, what)


def test_average(bucketed, values, uses, xs):
    """Means over ranks, in two iterations, one after the other."""
    compare(bucketed.value, values, uses, xs)


def test_mixed(bucketed, rng):
    """Two dtypes, several shapes and layouts, one parameter used twice, one frozen; three ranks."""
    values, xs = squares(rng, 5), squares(rng, 3)
    values[1] = torch.randn((), generator=rng, dtype=torch.float64)
    values[2] = torch.randn(3, generator=rng)
    values[3] = values[3].t()
    uses = [[0, 1, 2, 3, 4, 2]] * 3
    for capacity in (1, 100, 1000):
        found = bucketed.ask(values, uses, xs, capacity, 1, [4]).value
        compare(found, values, uses, xs, frozen=[4])


def test_order(bucketed, values, xs):
    """Ranks whose gradients come in different orders, in buckets of the same size."""
    uses = [[0, 1, 2, 3, 4, 5], [4, 5, 1, 3, 0, 2]]
    found = bucketed.ask(values, uses, xs, SQUARE, 2, []).value
    compare(found, values, uses, xs)


@claimed
def test_messages(bucketed, values, uses, xs):
    """One all-reduce for each bucket, of its bytes."""
    for rank, of_rank in enumerate(bucketed.value):
        for turn, found in enumerate(of_rank):
            said = [(n, b) for n, b in found["events"] if n != "finish" and n[:8] != "gradient"]
            what = f"What rank {rank} sent in iteration {turn}: three buckets of two."
            assert_equal(said, [("all_reduce", 2 * SQUARE)] * 3, what)


@claimed
@points(3)
def test_overlap(bucketed, overlapped, values, xs, capacity):
    """A bucket goes out as soon as its last gradient is there, and `backward` waits for nothing."""
    assert_early(bucketed)
    # On rank 1 the gradient of the first bucket comes last, or nearly so: one hook lets many go.
    uses = [[0, 1, 2, 3, 4, 5], [4, 5, 1, 3, 0, 2]]
    for rank, of_rank in enumerate(bucketed.ask(values, uses, xs, SQUARE, 2, []).value):
        for turn, one in enumerate(of_rank):
            names = [name for name, _ in one["events"]]
            what = f"Rank {rank}, iteration {turn}, gradients in another order on rank 1: "
            what += f"{', '.join(names)}. All-reduces before finish, of six buckets."
            assert_equal(names[: names.index("finish")].count("all_reduce"), 6, what)
    # rank 0 computes all gradients before rank 1 begins its backward
    found = overlapped.value
    expected = [gradients(values, range(6), x) for x in xs]
    for rank, of_rank in enumerate(found):
        for at, mine in enumerate(of_rank["grads"]):
            mean = torch.stack([grads[at] for grads in expected]).mean(0)
            with about(of=f"Rank {rank}, `.grad` of parameter {at} after `finish`. "):
                assert_close(mine, mean, rtol=1e-10, atol=1e-10, because=ROUNDING)
    assert_holds(
        found[1]["heard"],
        "Rank 0 did not get through its backward before rank 1 began: it waited on the way.",
    )


def assert_early(bucketed):
    """Fail unless each bucket is issued before other gradients than its own come."""
    for rank, of_rank in enumerate(bucketed.value):
        for turn, found in enumerate(of_rank):
            names = [name for name, _ in found["events"]]
            # each bucket goes out between its own last gradient and the next bucket's last one
            marks = ["gradient 4", "gradient 2", "gradient 0", "finish"]
            at = [names.index(mark) for mark in marks]
            sent = [names[a:b].count("all_reduce") for a, b in pairwise(at)]
            what = f"Rank {rank}, iteration {turn}: {', '.join(names)}. All-reduces from "
            what += "gradient 4 to 2, from 2 to 0, from 0 to finish."
            assert_equal(sent, [1, 1, 1], what)


def test_missing(bucket_missing, values, rng):
    """`finish` raises RuntimeError where a parameter had no gradient."""
    x = squares(rng, 1)[0]
    got = bucket_missing.ask(values, x, 2 * SQUARE).value
    assert_equal(got, ["RuntimeError"] * 2, "What `finish` raised, by rank.")
