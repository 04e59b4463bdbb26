"""Checks of `ActivationRecorder`: what it saw, and what it left behind."""

import pytest
import torch

from grader import assert_close, assert_equal, assert_tensor, facts, gate


@pytest.fixture
def x(rng):
    """float32 (5, 4)."""
    return torch.randn(5, 4, generator=rng)


@gate
def test_can_be_entered(recorded):
    """Entering gives a dict that the calls fill."""
    assert_equal(bool(recorded.value["outputs"]), True, "Nothing was recorded.")


def test_names(recorded):
    """Leaf modules alone are recorded, in the order of their calls."""
    assert_equal(recorded.value["names"], ["0", "1", "2.0"])


def test_outputs(recorded):
    """The last module's output is the model's."""
    got, expected = recorded.value["outputs"].get("2.0"), recorded.value["expected"]
    assert_tensor(got, dtype=expected.dtype, shape=expected.shape)
    assert_close(got.detach(), expected, rtol=0, atol=0, because="it is the same tensor")


def test_detached(recorded):
    """Recorded outputs hold no graph."""
    graphs = [name for name, t in recorded.value["outputs"].items() if not facts(t).is_leaf]
    assert_equal(graphs, [], "These outputs keep a graph alive.")


def test_hooks_are_gone(recorded):
    """No hook is left, after an error in the body neither, and nothing more is recorded."""
    hooks = recorded.value["hooks"]
    assert_equal((hooks["after"], hooks["after an error"]), (0, 0), "Hooks are left on the model.")
    assert_equal(recorded.value["frozen"], True, "A call after the `with` was recorded.")


def test_model_can_go(recorded):
    """Nothing keeps the model alive."""
    assert_equal(recorded.value["model is alive"], False, "Something still refers to the model.")
