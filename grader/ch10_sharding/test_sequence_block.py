"""Checks of `sequence_block`: against one process, what ranks said, and what was kept for backward."""

import pytest
import torch
import torch.nn.functional as F

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
from grader.ch10_sharding.layers import SUMS, assert_gradients, normal, shared_out
from grader.ch10_sharding.layouts import kind_of
from grader.ch10_sharding.shards import parts as rows_of

FEATURES = 4
SIZES = [2, 1, 3]
"""Hidden features of each rank."""

NORM = ["norm_w", "norm_b"]


def weights(rng, hidden):
    return {
        "norm_w": normal(rng, FEATURES),
        "norm_b": normal(rng, FEATURES),
        "up": normal(rng, hidden, FEATURES),
        "down": normal(rng, FEATURES, hidden),
    }


def alone(xs, whole, factors):
    """Return each rank's rows of the output of one process, and all gradients."""
    leaves = {name: t.clone().requires_grad_() for name, t in {"x": torch.cat(xs), **whole}.items()}
    x, norm_w, norm_b, up, down = leaves.values()
    normed = F.layer_norm(x, (FEATURES,), norm_w, norm_b)
    out = F.linear(F.gelu(F.linear(normed, up)), down)
    grads = torch.autograd.grad((out * torch.cat(factors)).sum(), list(leaves.values()))
    return out.detach().split([len(x) for x in xs]), dict(zip(leaves, grads, strict=True))


def expected_gradients(xs, whole, factors, sizes):
    _, grads = alone(xs, whole, factors)
    mine = shared_out({name: grads[name] for name in whole}, sizes)
    pieces = grads["x"].split([len(x) for x in xs])
    return [{**of_rank, "x": piece} for of_rank, piece in zip(mine, pieces, strict=True)]


def assert_outputs(found, xs, whole, factors, rows=()):
    for rank, (mine, right) in enumerate(zip(found, alone(xs, whole, factors)[0], strict=True)):
        with about(*rows, of=f"The output's rows on rank {rank}. "):
            assert_close(mine["out"], right, rtol=1e-8, atol=1e-8, because=SUMS)


@pytest.fixture
def xs(rng):
    return list(rows_of(normal(rng, 6, FEATURES), len(SIZES)))


@pytest.fixture
def factors(rng):
    return list(rows_of(normal(rng, 6, FEATURES), len(SIZES)))


@pytest.fixture
def whole(rng):
    return weights(rng, sum(SIZES))


@pytest.fixture
def parts(whole):
    return shared_out(whole, SIZES)


@pytest.fixture
def ranks():
    return len(SIZES)


@pytest.fixture
def members():
    return list(range(len(SIZES)))


@gate
def test_shape(sequence_blocks, xs):
    """Returns as many rows as `x` has."""
    for mine, x in zip(sequence_blocks.value, xs, strict=True):
        assert_tensor(mine["out"], dtype=torch.float64, shape=x.shape)


def test_output(sequence_blocks, xs, whole, factors):
    """Each rank has its rows of the output of one process."""
    assert_outputs(sequence_blocks.value, xs, whole, factors)


def test_input_gradient(sequence_blocks, xs, whole, factors):
    """The gradient of `x` is what all ranks say of its rows."""
    right = expected_gradients(xs, whole, factors, SIZES)
    assert_gradients(sequence_blocks.value, right, ["x"], ())


def test_layer_gradients(sequence_blocks, xs, whole, factors):
    """Gradients of `up` and `down` are the rank's part, of all rows."""
    right = expected_gradients(xs, whole, factors, SIZES)
    assert_gradients(sequence_blocks.value, right, ["up", "down"], ())


@points(2)
def test_norm_gradients(sequence_blocks, xs, whole, factors):
    """Gradients of `norm_w` and `norm_b` are whole on every rank."""
    right = expected_gradients(xs, whole, factors, SIZES)
    assert_gradients(sequence_blocks.value, right, NORM, ())


def test_uneven(sequence_blocks, rng):
    """Numbers of rows that do not come out even, and a rank without any."""
    for rows, sizes in ((5, [1, 2, 1, 2]), (3, [0, 3])):
        xs, factors = (list(rows_of(normal(rng, rows, FEATURES), len(sizes))) for _ in range(2))
        whole = weights(rng, sum(sizes))
        everyone = list(range(len(sizes)))
        asked = sequence_blocks.ask(xs, shared_out(whole, sizes), factors, len(sizes), everyone)
        shown = (("rows by rank", repr([len(x) for x in xs])), ("hidden features", repr(sizes)))
        assert_outputs(asked.value, xs, whole, factors, shown)
        right = expected_gradients(xs, whole, factors, sizes)
        assert_gradients(asked.value, right, ["x", *whole], shown)


def test_groups(sequence_blocks, whole, rng):
    """A group of ranks 1 and 2 alone."""
    xs, factors = (list(rows_of(normal(rng, 3, FEATURES), 2)) for _ in range(2))
    sizes = [2, 4]
    asked = sequence_blocks.ask(xs, shared_out(whole, sizes), factors, 3, [1, 2])
    shown = (("group", "ranks 1 and 2"),)
    assert_outputs(asked.value, xs, whole, factors, shown)
    right = expected_gradients(xs, whole, factors, sizes)
    assert_gradients(asked.value, right, ["x", *whole], shown)


def said_of(events):
    return [(kind_of(name), size) for name, size in events]


@claimed
@points(2)
def test_messages(sequence_blocks, xs, whole, factors, ranks):
    """One all-gather and one reduce-scatter each way, and backward the gradients of the norm."""
    assert_outputs(sequence_blocks.value, xs, whole, factors)
    right = expected_gradients(xs, whole, factors, SIZES)
    assert_gradients(sequence_blocks.value, right, ["x"], ())
    size = xs[0].nbytes
    for rank, mine in enumerate(sequence_blocks.value):
        expected = [("all_gather", size), ("reduce_scatter", size * ranks)]
        got = said_of(mine["forward"])
        assert_equal(got, expected, f"What rank {rank} called in forward.")
        backward = said_of(mine["backward"])
        got = sorted(call for call in backward if call[0] != "all_reduce")
        assert_equal(got, expected, f"What rank {rank} called in backward, all-reduces aside.")
        norms = [size for kind, size in backward if kind == "all_reduce"]
        bytes_ = 2 * FEATURES * 8
        fine = len(norms) in (1, 2) and sum(norms) == bytes_
        what = f"The all-reduces of rank {rank} in backward."
        wanted = ("expected", f"one or two, of {bytes_} bytes in all")
        assert_holds(fine, what, wanted, ("got", f"{norms} bytes"))


@claimed
def test_saved(sequence_blocks, rng):
    """Autograd keeps of the norm what this rank's rows need."""
    rows, sizes = 32, [1, 1, 1, 1]
    xs, factors = (list(rows_of(normal(rng, rows, FEATURES), len(sizes))) for _ in range(2))
    whole = weights(rng, len(sizes))
    everyone = list(range(len(sizes)))
    found = sequence_blocks.ask(xs, shared_out(whole, sizes), factors, len(sizes), everyone).value
    assert_outputs(found, xs, whole, factors)
    for rank, (mine, x, hidden) in enumerate(zip(found, xs, sizes, strict=True)):
        most = 8 * (rows * (FEATURES + 2 * hidden) + 3 * len(x) * FEATURES)
        shown = ("expected", f"{most} bytes at most"), ("kept", f"{mine['saved']} bytes")
        what = f"Rank {rank}, which has {len(x)} of {rows} rows, keeps too much for backward."
        assert_holds(mine["saved"] <= most, what, *shown)
