"""Checks of `Unit`: against one process that averages, what was said, and what was alive when."""

from collections import Counter

import pytest
import torch

from grader import (
    about,
    assert_close,
    assert_equal,
    assert_holds,
    assert_same_bits,
    assert_tensor,
    claimed,
    draw_int,
    gate,
    points,
)
from grader.ch10_sharding.layers import normal
from grader.ch10_sharding.layouts import kind_of
from grader.ch10_sharding.probes.units import modules_of, output_of
from grader.ch10_sharding.shards import bounds

ROUNDING = "the same sums in float64, in another order"
WIDTH, COUNT, WORLD = 64, 8, 3
UNIT_BYTES = WIDTH * WIDTH * 4
SLACK = UNIT_BYTES // 2
"""Room for activations: 256 bytes for each tensor of one row, some for each unit."""


@pytest.fixture
def kind():
    return "chain"


@pytest.fixture
def seed(rng):
    return draw_int(rng, 0, 2**40)


@pytest.fixture
def batches(rng):
    return [[normal(rng, 2, 3) for _ in range(2)] for _ in range(WORLD)]


@pytest.fixture
def ranks():
    return WORLD


@pytest.fixture
def members():
    return list(range(WORLD))


@pytest.fixture
def width():
    return WIDTH


@pytest.fixture
def count():
    return COUNT


@pytest.fixture
def limits():
    """The most bytes that may be alive, by the moment."""
    shards = COUNT * -(-WIDTH * WIDTH // WORLD) * 4
    return {
        "made": shards + SLACK,
        "forward": 2 * UNIT_BYTES + SLACK,
        "between": SLACK,
        "backward": 5 * UNIT_BYTES + SLACK,
        "after": SLACK,
        "quiet": SLACK,
    }


def shards_of(tensors, ranks):
    """Return each rank's part of tensors one behind the other, padded with zeros."""
    flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
    longest = bounds(len(flat), ranks)[0][1]
    padded = torch.cat([flat, flat.new_zeros(longest * ranks - len(flat))])
    return list(padded.split(longest))


def alone(kind, seed, batches):
    """Return, by step, outputs by rank, and by unit and rank gradients and parameters, of one process."""
    ranks, modules = len(batches), modules_of(kind, seed)
    parameters = [p for module in modules for p in module.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.1)
    for p in parameters:
        p.grad = torch.zeros_like(p)
    steps = []
    for step in range(len(batches[0])):
        outs = [output_of(kind, modules, mine[step]) for mine in batches]
        (sum(out.square().mean() for out in outs) / ranks).backward()
        grads = [shards_of([p.grad for p in m.parameters()], ranks) for m in modules]
        optimizer.step()
        after = [shards_of([p.detach() for p in m.parameters()], ranks) for m in modules]
        steps.append({"outs": [out.detach() for out in outs], "grads": grads, "shards": after})
    return steps


def assert_output(found, expected, step=0, rows=()):
    for rank, (mine, right) in enumerate(zip(found, expected[step]["outs"], strict=True)):
        with about(*rows, of=f"The output on rank {rank} in step {step + 1}. "):
            assert_close(mine["steps"][step]["out"], right, rtol=1e-9, atol=1e-9, because=ROUNDING)


def assert_parts(found, expected, name, step=0, rows=()):
    called = {"grads": "`shard.grad`", "shards": "`shard`"}[name]
    for rank, mine in enumerate(found):
        for at, of_unit in enumerate(expected[step][name]):
            where = f"{called} of unit {at} on rank {rank} after step {step + 1}. "
            with about(*rows, of=where):
                got = mine["steps"][step][name][at]
                tolerance = 1e-6 if name == "shards" else 1e-9  # Adam divides by small numbers
                assert_close(got, of_unit[rank], rtol=tolerance, atol=tolerance, because=ROUNDING)


@gate
def test_one_parameter(units_trained):
    """The unit has one parameter, `shard`."""
    for mine in units_trained.value:
        names = mine["parameters"]
        with about(("their names", str(names))):
            counts = [len(own) for own in names]
            assert_equal(counts, [1, 1, 1], "How many parameters each of three units has.")
        assert_equal(names, [["shard"]] * 3, "The names of each unit's parameters.")


def test_shards(units_trained, kind, seed, ranks):
    """`shard` is this rank's part of all parameters, flat and padded, in memory of its own."""
    for at, module in enumerate(modules_of(kind, seed)):
        expected = shards_of([p.detach() for p in module.parameters()], ranks)
        for rank, (mine, right) in enumerate(zip(units_trained.value, expected, strict=True)):
            with about(of=f"`shard` of unit {at} on rank {rank}. "):
                assert_tensor(mine["first"][at], dtype=torch.float64, shape=right.shape)
                assert_same_bits(mine["first"][at], right)
            size = f"{mine['storage'][at]} bytes"
            what = f"The storage of `shard` of unit {at} holds more than the shard."
            assert_holds(mine["storage"][at] == right.nbytes, what, ("holds", size))


def test_output(units_trained, kind, seed, batches):
    """Every rank has the outputs of the whole modules, with and without gradients."""
    expected = alone(kind, seed, batches)
    assert_output(units_trained.value, expected)
    for rank, (mine, right) in enumerate(
        zip(units_trained.value, expected[0]["outs"], strict=True)
    ):
        with about(of=f"The output on rank {rank} under `no_grad`. "):
            assert_close(mine["without grad"], right, rtol=1e-9, atol=1e-9, because=ROUNDING)


@points(2)
def test_gradients(units_trained, kind, seed, batches):
    """`shard.grad` is this rank's part of the mean gradient; a second backward adds to it."""
    expected = alone(kind, seed, batches)
    assert_parts(units_trained.value, expected, "grads")
    assert_parts(units_trained.value, expected, "shards")
    assert_parts(units_trained.value, expected, "grads", 1)


def test_odd_modules(units_trained, seed, ranks, members, rng):
    """A weight that is used twice, a parameter that is not used, results that are not used."""
    batches = [[normal(rng, 2, 3)] for _ in range(WORLD)]
    found = units_trained.ask("odd", seed, batches, ranks, members).value
    expected = alone("odd", seed, batches)
    assert_output(found, expected)
    assert_parts(found, expected, "grads")


def test_called_again(units_trained, seed, ranks, members, rng):
    """A unit that is called three times before any backward."""
    batches = [[normal(rng, 2, 3)] for _ in range(WORLD)]
    found = units_trained.ask("again", seed, batches, ranks, members).value
    expected = alone("again", seed, batches)
    assert_output(found, expected)
    assert_parts(found, expected, "grads")


def test_groups(units_trained, kind, seed, batches, ranks):
    """A group of ranks 1 and 2 alone."""
    found = units_trained.ask(kind, seed, batches[:2], ranks, [1, 2]).value
    expected = alone(kind, seed, batches[:2])
    rows = (("group", "ranks 1 and 2"),)
    assert_output(found, expected, rows=rows)
    assert_parts(found, expected, "grads", rows=rows)


@claimed
@points(2)
def test_messages(units_trained, kind, seed, batches, ranks):
    """An all-gather of the shard in forward; in backward another at most, and a reduce-scatter."""
    expected = alone(kind, seed, batches)
    assert_output(units_trained.value, expected)
    assert_parts(units_trained.value, expected, "grads")
    sizes = [of_unit[0].nbytes for of_unit in expected[0]["grads"]]
    gathers = [("all_gather", size) for size in sizes]
    scatters = [("reduce_scatter", size * ranks) for size in sizes]
    for rank, mine in enumerate(units_trained.value):
        step = mine["steps"][0]
        for name, events, wanted in (
            ("in forward", step["forward"], gathers),
            ("without gradients", mine["said without grad"], gathers),
            ("in backward, gathers aside,", step["backward"], scatters),
        ):
            got = sorted((kind_of(called), size) for called, size in events)
            if wanted is scatters:
                again = [call for call in got if call[0] == "all_gather"]
                got = [call for call in got if call not in again]
            assert_equal(got, sorted(wanted), f"What rank {rank} called {name}.")
        more = Counter(again) - Counter(gathers)
        shown = ("expected", f"{gathers} at most"), ("got", repr(again))
        assert_holds(not more, f"Rank {rank} gathers too often in backward.", *shown)


def assert_alive(found, name, limits, words):
    most = limits[name]
    for rank, mine in enumerate(found):
        limit = ("expected", f"{most} bytes at most")
        got = ("alive", f"{mine[name]} bytes, in halves of a unit")
        size = ("a unit's parameters", f"{UNIT_BYTES} bytes; {COUNT} units on {WORLD} ranks")
        assert_holds(mine[name] <= most, f"{words} on rank {rank}.", limit, got, size)


@claimed
def test_alive_in_forward(units_alive, limits):
    """Made units hold shards; in forward two units' parameters are alive, and none after it."""
    found = units_alive.value
    assert_alive(found, "made", limits, "What is alive when units have been made,")
    assert_alive(found, "forward", limits, "The most that is alive in forward")
    assert_alive(found, "between", limits, "What is alive between forward and backward")
    assert_alive(found, "quiet", limits, "What is alive after a forward without gradients")


@claimed
def test_alive_in_backward(units_alive, limits):
    """In backward five times a unit's parameters are alive, and after it none."""
    found = units_alive.value
    words = "The most that is alive in backward, gradients of shards aside,"
    assert_alive(found, "backward", limits, words)
    words = "What is alive after backward, gradients of shards aside,"
    assert_alive(found, "after", limits, words)
