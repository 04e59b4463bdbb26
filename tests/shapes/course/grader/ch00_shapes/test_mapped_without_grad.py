"""Checks of `mapped_without_grad`: results, laziness, and whose grad mode it is."""

import pytest
import torch

from grader import assert_equal, facts, gate


@pytest.fixture
def x():
    return torch.arange(3.0)


@gate
def test_three_results(steps):
    """An endless source gives results one by one."""
    assert_equal(len(steps.value["results"]), 3)


def test_values(steps, x):
    """Results are `f(item)`, in order."""
    assert_equal([r.tolist() for r in steps.value["results"]], [(x + n).tolist() for n in range(3)])


def test_without_grad(steps):
    """No result requires grad."""
    assert_equal([facts(r).requires_grad for r in steps.value["results"]], [False] * 3)


def test_lazy(steps):
    """An item is taken when a result is asked for, not before."""
    assert_equal([pulled for _, _, pulled in steps.value["notes"]], [0, 1, 2, 3])


def test_the_callers_grad_mode(steps):
    """Between two results, grad mode is as the caller left it."""
    assert_equal(
        [mode for _, mode, _ in steps.value["notes"]], [True] * 4, "Grad mode was changed."
    )
    assert_equal(steps.value["grad mode at the end"], True, "Grad mode stays off at the end.")
