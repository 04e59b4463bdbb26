"""Checks of `mlp`: against two layers in one process, and what ranks said to each other."""

import pytest
import torch

from grader import (
    about,
    assert_close,
    assert_equal,
    assert_holds,
    assert_tensor,
    claimed,
    gate,
    points,
)
from grader.ch10_sharding.layers import (
    SUMS,
    alone,
    assert_gradients,
    normal,
    shared_out,
    weights,
)
from grader.ch10_sharding.layouts import kind_of

BATCH, FEATURES = 3, 5
SIZES = [2, 2, 2]
"""Hidden features of each rank."""


@pytest.fixture
def x(rng):
    return normal(rng, BATCH, FEATURES)


@pytest.fixture
def whole(rng):
    return weights(rng, FEATURES, sum(SIZES))


@pytest.fixture
def parts(whole):
    return shared_out(whole, SIZES)


@pytest.fixture
def factor(rng):
    return normal(rng, BATCH, FEATURES)


@pytest.fixture
def ranks():
    return len(SIZES)


@pytest.fixture
def members():
    return list(range(len(SIZES)))


def assert_outputs(found, out, name="out", rows=()):
    for rank, mine in enumerate(found):
        with about(*rows, of=f"The output on rank {rank}. "):
            assert_close(mine[name], out, rtol=1e-9, atol=1e-9, because=SUMS)


@gate
def test_shape(mlps, x):
    """Returns a tensor of the shape of `x` on every rank, and leaves `x` as it is."""
    for rank, mine in enumerate(mlps.value):
        assert_tensor(mine["out"], dtype=torch.float64, shape=x.shape)
        assert_holds(mine["untouched"], f"The `x` of rank {rank} was changed.")


def test_output(mlps, x, whole, factor):
    """Every rank has the output of one process, with and without gradients."""
    out, _ = alone(x, whole, factor)
    assert_outputs(mlps.value, out)
    assert_outputs(mlps.value, out, "without grad")


def expected_gradients(x, whole, factor, sizes):
    _, grads = alone(x, whole, factor)
    mine = shared_out({name: grads[name] for name in whole}, sizes)
    return [{**of_rank, "x": grads["x"]} for of_rank in mine]


@points(2)
def test_weight_gradients(mlps, x, whole, factor):
    """Gradients of the weights and biases are the rank's part of those of one process."""
    right = expected_gradients(x, whole, factor, SIZES)
    assert_gradients(mlps.value, right, list(whole), ())


@points(2)
def test_input_gradient(mlps, x, whole, factor):
    """The gradient of `x` is whole on every rank."""
    right = expected_gradients(x, whole, factor, SIZES)
    assert_gradients(mlps.value, right, ["x"], ())


def test_uneven(mlps, x, factor, rng):
    """Ranks with more and fewer hidden features, and one that has none."""
    for sizes in ([2, 2, 1, 0], [0, 3]):
        whole = weights(rng, FEATURES, sum(sizes))
        everyone = list(range(len(sizes)))
        parts = shared_out(whole, sizes)
        found = mlps.ask(x, parts, factor, len(sizes), everyone).value
        rows = (("hidden features by rank", repr(sizes)),)
        assert_outputs(found, alone(x, whole, factor)[0], rows=rows)
        right = expected_gradients(x, whole, factor, sizes)
        assert_gradients(found, right, ["x", *whole], rows)


def test_groups(mlps, x, whole, factor):
    """A group of ranks 1 and 2 alone."""
    sizes = [2, 4]
    found = mlps.ask(x, shared_out(whole, sizes), factor, 3, [1, 2]).value
    rows = (("group", "ranks 1 and 2"),)
    assert_outputs(found, alone(x, whole, factor)[0], rows=rows)
    right = expected_gradients(x, whole, factor, sizes)
    assert_gradients(found, right, ["x", *whole], rows)


@claimed
def test_forward_message(mlps, x, whole, factor):
    """Forward is one all-reduce of the output's bytes."""
    assert_outputs(mlps.value, alone(x, whole, factor)[0])
    for rank, mine in enumerate(mlps.value):
        said = [(kind_of(name), size) for name, size in mine["forward"]]
        assert_equal(said, [("all_reduce", x.nbytes)], f"What rank {rank} called in forward.")


@claimed
def test_backward_message(mlps, x, whole, factor):
    """Backward is one all-reduce of the bytes of `x`."""
    assert_gradients(mlps.value, expected_gradients(x, whole, factor, SIZES), ["x"], ())
    for rank, mine in enumerate(mlps.value):
        said = [(kind_of(name), size) for name, size in mine["backward"]]
        assert_equal(said, [("all_reduce", x.nbytes)], f"What rank {rank} called in backward.")
