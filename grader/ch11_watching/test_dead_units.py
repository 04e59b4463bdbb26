"""Checks of `dead_units`: layers whose units fire on known samples."""

import pytest
import torch

from grader import about, assert_equal, claimed, gate, points
from grader.ch11_watching.observed import assert_reads, assert_undisturbed


def layer(rng, units=12, features=5):
    """Return weights and biases with units that fire often, rarely, and never."""
    weights = torch.randn(units, features, generator=rng)
    order = torch.randperm(units, generator=rng)
    bias = torch.linspace(-6.0, 2.0, units)[order]
    bias[order[0]] = -1e3  # one at least is dead
    return weights, bias


def batches_of(rng, sizes, shape):
    return [torch.randn(size, *shape, generator=rng) for size in sizes]


@pytest.fixture
def weights(rng):
    return torch.randn(6, 4, generator=rng)


@pytest.fixture
def bias():
    return torch.tensor([-1e3, 5.0, -1e3, 5.0, 0.0, -1e3])


@pytest.fixture
def kind():
    return "relu"


@pytest.fixture
def batches(rng):
    return batches_of(rng, [3, 3], [4])


@pytest.fixture
def images():
    return False


@pytest.fixture
def channels():
    return {"0.inner.1": 1}


def silent(weights, bias, batches, images, slope=0.0):
    """Return the units that are 0 for every sample and position."""
    fired = torch.zeros(len(bias), dtype=torch.bool)
    for x in batches:
        x = (x.movedim(1, -1) if images else x).flatten(0, -2)
        out = torch.nn.functional.linear(x, weights, bias)
        out = torch.where(out > 0, out, slope * out)
        fired |= (out != 0).any(0)
    return torch.nonzero(~fired).flatten().tolist()


def compare(dead, rng, batches, *, kind="relu", images=False, dim=1, feature=5, at="0.inner.1"):
    weights, bias = layer(rng, features=feature)
    got = dead.ask(weights, bias, kind, batches, images, {at: dim}).value
    expected = {at: silent(weights, bias, batches, images, 0.1 if kind == "leaky" else 0.0)}
    told = f"{kind}, batches of {[tuple(x.shape) for x in batches]}, units in dimension {dim}"
    with about(("layer", told)):
        assert_equal(got, expected, "The dead units.")


@gate
def test_a_dict_of_lists(dead):
    """Returns a dict with an ascending list of whole numbers for each name."""
    got = dead.value
    kinds = {k: type(v).__name__ for k, v in got.items()} if isinstance(got, dict) else repr(got)
    assert_equal(kinds, {"0.inner.1": "list"}, "What is returned.")
    found = [type(unit).__name__ for unit in got["0.inner.1"]]
    assert_equal(found[:1], ["int"], "What the list has: a unit with a bias of -1000 is dead.")
    assert_equal(got["0.inner.1"], sorted(got["0.inner.1"]), "The list in ascending order.")


@points(2)
def test_over_all_batches(dead, rng):
    """A unit that fires once, in whichever batch, is not dead."""
    for sizes in ((4,), (2, 30, 2), (1,) * 12, (25, 1)):
        compare(dead, rng, batches_of(rng, sizes, [5]))


@points(2)
def test_positions(dead, rng):
    """Units in any dimension: a unit is dead if it is 0 at every position."""
    compare(dead, rng, batches_of(rng, [2, 3], [6, 5]), dim=-1)
    compare(dead, rng, batches_of(rng, [2, 3], [6, 5]), dim=2)
    for dim in (1, -3):
        compare(dead, rng, batches_of(rng, [2, 1], [5, 3, 2]), images=True, dim=dim, at="0")


def test_below_zero(dead, rng):
    """A unit whose numbers are below 0 is not dead."""
    compare(dead, rng, batches_of(rng, [6, 6], [5]), kind="leaky")
    weights, _ = layer(rng)
    (x,) = batches_of(rng, [3], [5])
    both = torch.cat([x, -x])
    got = dead.ask(weights, torch.zeros(12), "relu", [both], False, {"0.inner.0": 1}).value
    what = "The dead units of a layer without bias, on samples and on their negatives."
    assert_equal(got, {"0.inner.0": []}, what)


def test_at_once(dead, rng):
    """What a module returned is seen before the next one writes to it."""
    weights, bias = layer(rng)
    batches = batches_of(rng, [5, 4], [5])
    got = dead.ask(
        weights, bias, "in place", batches, False, {"0.inner.0": 1, "0.inner.1": 1}
    ).value
    expected = {"0.inner.0": [], "0.inner.1": silent(weights, bias, batches, False)}
    assert_equal(
        got, expected, "The dead units of a layer, and of the ReLU that writes to its result."
    )


def test_eval_mode(dead, rng):
    """Dropout makes no dead units: the model runs in eval mode."""
    weights = torch.ones(40, 3)
    batches = [torch.ones(1, 3)]
    got = dead.ask(weights, torch.ones(40), "relu", batches, False, {"0.inner.2": 1}).value
    assert_equal(got, {"0.inner.2": []}, "Dead units of a dropout behind units that all fire.")


def test_several_calls(dead_in_two_calls, rng):
    """A module that is called several times has a dead unit if it is 0 each time."""
    for _ in range(3):
        pairs = [torch.randn(2, 2, 8, generator=rng) - 1.2 for _ in range(2)]
        silent = [i for i in range(8) if not any(bool((p[..., i] > 0).any()) for p in pairs)]
        got = dead_in_two_calls.ask(pairs).value
        assert_equal(got, {"act": silent}, "Dead units of a ReLU that is called twice.")


@claimed
@points(2)
def test_cost(dead_cost):
    """At most one read for each name, and no batch is kept."""
    few, many = dead_cost.ask(3).value, dead_cost.ask(9).value
    assert_reads(many["reads"], 2, "for two names and nine batches")
    assert_equal(many["batches"], few["batches"], "Batches alive at once: with 9, and with 3.")


@gate
def test_the_run_is_the_same(dead_in_a_run):
    """A run in which one asks is the same to the last bit: modes, buffers and random numbers too."""
    assert_undisturbed(dead_in_a_run.value)


@points(2)
def test_after_an_error(dead_after_an_error):
    """If the model or the batches raise, modes are as before and hooks are gone."""
    got = dead_after_an_error.value
    for where, error in (("model", "RuntimeError"), ("batches", "Stop")):
        with about(("raises", where)):
            expected = {"error": error, "modes": True, "left": [], "grad mode": True}
            assert_equal(got[where], expected, "The error that goes on, and what is as before.")
