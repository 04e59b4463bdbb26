"""Checks of `clamp_in_place`: what became of the input's bytes, and of those beside it."""

import pytest
import torch

from grader import assert_equal, facts, gate


@pytest.fixture
def whole(rng):
    """float32 (6, 8)."""
    return torch.randn(6, 8, generator=rng)


@pytest.fixture
def x(whole):
    """A view of `whole` with an offset and a step."""
    return whole[1:5, ::3]


@pytest.fixture
def low():
    return 0.25


@gate
def test_returns_x(clamped, x):
    """`x` itself is returned, on its own bytes."""
    assert_equal(clamped.value["is x"], True, "What you return is not `x`.")
    got = clamped.value["result"]
    assert_equal(facts(got).aliases is not None, True, "The result has a storage of its own.")
    assert_equal((got.stride(), got.storage_offset()), (x.stride(), x.storage_offset()))


def test_changed(clamped, x, low):
    """Every element below `low` became `low`; all others stayed."""
    clamped.value  # noqa: B018  (what the code raised is raised here)
    after = clamped.inputs_after["x"]
    assert_equal(bool(torch.equal(after, x.clamp(min=low))), True, "`x` does not hold the result.")


def test_nothing_beside_it(clamped, whole, x, low):
    """What lies between and around the elements of `x` is changed by nobody."""
    clamped.value  # noqa: B018
    expected = whole.clone()
    expected[1:5, ::3] = x.clamp(min=low)
    after = clamped.inputs_after["whole"]
    assert_equal(
        bool(torch.equal(after, expected)), True, "The storage of `x` is not as it must be."
    )
