"""Checks of `average`: every rank's result, and every rank's own tensor afterwards."""

import pytest
import torch

from grader import assert_equal, assert_tensor, gate


@pytest.fixture
def parts():
    """One float32 (3,) for each of two ranks; their mean is exact."""
    return [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([3.0, 6.0, -1.0])]


@gate
def test_every_rank_answers(averaged, parts):
    """Every rank returns a tensor of the shape of its own."""
    for mean, _ in averaged.value:
        assert_tensor(mean, dtype=torch.float32, shape=parts[0].shape)


@gate
def test_own_tensor(averaged, parts):
    """Every rank's own tensor is as it was."""
    assert_equal([x.tolist() for _, x in averaged.value], [x.tolist() for x in parts])


def test_mean(averaged):
    """Every rank has the mean."""
    assert_equal([mean.tolist() for mean, _ in averaged.value], [[2.0, 4.0, 1.0]] * 2)
