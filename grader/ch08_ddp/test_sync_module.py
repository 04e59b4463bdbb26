"""Checks of `sync_module`: every tensor of every rank against the source's, and who refuses."""

import pytest
import torch

from grader import (
    about,
    assert_equal,
    assert_holds,
    assert_same_bits,
    claimed,
    draw_int,
    gate,
    points,
)
from grader.ch08_ddp.probes.replicas import Replica, tensors_of

DESCRIPTIONS = 16_000
"""Bytes for finding out whether the modules agree: ten times what a list of names needs."""


@pytest.fixture
def base(rng):
    return draw_int(rng, 1, 99)


@pytest.fixture
def world_size():
    return 3


@pytest.fixture
def source():
    return 0


def compare(synced, base, source, names=()):
    """Compare the tensors of these names, or all, with those of rank `source`."""
    expected = tensors_of(Replica(base, source))
    for rank, found in enumerate(synced.ask(base, 3, source).value):
        for name in names or expected:
            values = found["values"].get(name)
            assert_holds(values is not None, f"Rank {rank} has no `{name}` any more.")
            if not torch.equal(values, expected[name]):
                with about(of=f"`{name}` on rank {rank}, after sync_module(module, {source}). "):
                    assert_same_bits(values, expected[name].detach())


@gate
def test_runs(synced, base):
    """Runs on every rank, and leaves rank 0's values as they are."""
    there = synced.value[0]["values"]
    for name, expected in tensors_of(Replica(base, 0)).items():
        assert_holds(name in there, f"Rank 0 has no `{name}` any more.")
        assert_holds(
            torch.equal(there[name], expected), f"Rank 0 has another `{name}` than before."
        )


@points(4)
def test_parameters(synced, base):
    """Parameters, one of them frozen, one without dimensions, one empty: rank 0's on all ranks."""
    compare(synced, base, 0, ["frozen", "scale", "empty", "table.weight", "inner.0.weight"])


def test_buffers(synced, base):
    """Buffers, those that are not saved among them."""
    compare(
        synced, base, 0, ["steps", "mask", "inner.1.running_var", "inner.1.num_batches_tracked"]
    )


def test_layouts(synced, base):
    """Tensors that lie in memory in another way on each rank."""
    compare(synced, base, 0, ["weight", "column"])


def test_source(synced, base):
    """Another source than rank 0."""
    compare(synced, base, 2)


def test_same_objects(synced, base):
    """Nothing is returned; tensors stay the same objects, with strides and flags; ties stay ties."""
    compare(synced, base, 0, ["frozen"])
    for rank, found in enumerate(synced.value):
        assert_holds(not found["returned"], f"Rank {rank} returned something.")
        assert_equal(found["same objects"], [], f"What is another object on rank {rank}.")
        assert_equal(found["other layouts"], [], f"What has other strides or flags on rank {rank}.")
        assert_equal(found["recorded"], [], f"What is no leaf on rank {rank}.")
        assert_holds(found["tied"], f"Two names of one tensor are two tensors on rank {rank}.")


@claimed
def test_sent_once(synced, base):
    """A tensor with two names is sent once."""
    compare(synced, base, 0, ["table.weight"])
    needed = sum(tensor.nbytes for tensor in tensors_of(Replica(base, 0)).values())
    for rank, found in enumerate(synced.value):
        expected = f"{needed} bytes, and {DESCRIPTIONS} at most for descriptions"
        rows = ("expected", expected), ("got", f"{found['bytes']} bytes")
        assert_holds(found["bytes"] <= needed + DESCRIPTIONS, f"What rank {rank} sent.", *rows)


def test_refused(sync_refused, base):
    """Where names, shapes or dtypes differ, every rank raises ValueError and nothing changes."""
    odds = (("name", 2), ("spelling of a name", 1), ("shape", 0), ("dtype", 1))
    for odd, rank in odds:
        got = sync_refused.ask(base, odd, rank).value
        what = f"Rank {rank} differs in a {odd}. What each rank raised."
        assert_equal([found["raised"] for found in got], ["ValueError"] * 3, what)
        assert_equal([found["changed"] for found in got], [[]] * 3, "What has changed, by rank.")


def test_other_order(sync_refused, base):
    """Where names come in another order on one rank, no tensor gets the values of another name."""
    for rank in (0, 1):
        got = sync_refused.ask(base, "order", rank).value
        raised = [found["raised"] for found in got]
        refused = raised == ["ValueError"] * 3
        where = f"Rank {rank} has its buffers `left` and `right` in another order. "
        if not refused:
            what = "What each rank raised: ValueError on all, or nothing on any."
            assert_equal(raised, ["nothing"] * 3, where + what)
        names = [found["changed" if refused else "other"] for found in got]
        what = "What has changed" if refused else "What has not the source's values"
        assert_equal(names, [[]] * 3, f"{where}{what}, by rank.")
