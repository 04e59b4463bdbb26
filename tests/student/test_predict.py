"""`predict`: what one would say is the same is the same."""

import math

import pytest
import torch

from grader import predict


@pytest.mark.parametrize(
    ("guess", "truth"),
    [
        (12, 12),
        ("12", 12),
        ((1, 2), [1, 2]),
        ([1, (2, 3)], (1, [2, 3])),
        ((2, 3), torch.zeros(2, 3).shape),
        (0.3, 0.1 + 0.2),
        (1, 1.0),
        (math.nan, math.nan),
        ("float32", torch.float32),
        (torch.float32, "float32"),
        ("View", "view"),
        (True, True),
    ],
)
def test_right(guess, truth):
    assert "and so it is" in repr(predict(guess, lambda: truth))


@pytest.mark.parametrize(
    ("guess", "truth"),
    [
        (12, 13),
        (2**60, 2**60 + 1),
        (0.1, torch.tensor(0.1).item()),  # what float32 makes of it is another number
        ((1, 2), [1, 2, 3]),
        (1, True),
        ("float16", torch.float32),
        (math.nan, 1.0),
    ],
)
def test_wrong(guess, truth):
    assert f"It is {truth}." in repr(predict(guess, lambda: truth))


def test_nothing_is_revealed_before_there_is_a_guess():
    asked = []
    assert "where the dots are" in repr(predict(..., lambda: asked.append(1)))
    assert "Give it a guess" in repr(predict()) and "Give it a guess" in repr(predict(12))
    assert not asked
