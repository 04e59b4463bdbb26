"""Checks of `OpLister`: one list for each graph, and graphs that run."""

import pytest
import torch

from grader import assert_close, assert_equal, gate


@pytest.fixture
def x(rng):
    """float32 (6,)."""
    return torch.randn(6, generator=rng)


@gate
def test_graphs_run(compiled, x):
    """Compiled functions give the results of the functions."""
    for results, f in (
        (compiled.value["straight"]["results"], lambda x: (x.sin() + 1).relu()),
        (compiled.value["broken"]["results"], lambda x: (x.sin() * 2).cos()),
    ):
        for got, given in zip(results, (x, x + 1), strict=True):
            assert_close(got, f(given), rtol=1e-6, atol=1e-6, because="the same kernels run")


def test_one_graph(compiled):
    """A function without a break gives one list, with its ops in order."""
    assert_equal(compiled.value["straight"]["graphs"], [["sin", "add", "relu"]])


def test_break(compiled):
    """A graph break gives a list for each side of it; a second call gives none."""
    assert_equal(compiled.value["broken"]["graphs"], [["sin", "mul"], ["cos"]])
