"""Checks of `grad_off`: grad mode inside, after, and after an error, from either state."""

import pytest

from grader import assert_equal, facts, gate


@pytest.fixture
def before():
    return True


@gate
def test_body_runs(grad_modes):
    """The body of the `with` runs."""
    assert_equal(isinstance(grad_modes.value["inside"], bool), True)


def test_inside(grad_modes):
    """Inside, grad mode is off, and results require no grad."""
    assert_equal(grad_modes.value["inside"], False, "Grad mode is on inside.")
    assert_equal(facts(grad_modes.value["y"]).requires_grad, False, "A result requires grad.")


def test_restored(grad_modes):
    """After a `with` where grad mode was on, it is on; where it was off, it is off."""
    for before in (True, False):
        assert_equal(grad_modes.ask(before).value["after"], before, f"Before, it was {before}.")


def test_restored_after_an_error(grad_modes):
    """The same when the body raised; and the error goes on."""
    for before in (True, False):
        found = grad_modes.ask(before).value
        assert_equal(found["after an error"], before, f"Before, it was {before}.")
        assert_equal(found["swallowed"], False, "The body's error was swallowed.")
