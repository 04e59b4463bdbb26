"""Checks of `prefetch_plan`: against a loader that is played through step by step."""

import pytest
import torch

from grader import about, assert_equal, compared, gate, points
from grader.ch06_dataloader.timelines import play


@pytest.fixture
def times(rng):
    """Fetch times of 15 batches, from 1 to 9."""
    return torch.randint(1, 10, (15,), generator=rng).tolist()


def compare(planned, *cases):
    """Compare all plans; of the first that differs, show the first batch that does."""
    plans = planned.ask([list(case) for case in cases]).value
    compared(plans)
    for case, got in zip(cases, plans, strict=True):
        expected = play(*case)
        with about(("call", f"prefetch_plan({', '.join(map(repr, case))})")):
            if not isinstance(got, list | tuple):
                assert_equal(got, expected, "The plan is a list.")
            assert_equal(len(got), len(expected), "How many batches the plan has.")
            for number, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
                what = f"Batch {number}: when it begins, ends, and is delivered."
                assert_equal(tuple(mine) if isinstance(mine, list) else mine, theirs, what)


@gate
def test_one_batch(planned):
    """A single batch is delivered when it has been fetched."""
    compare(planned, ([5], 2, 1, 2))


def test_nobody_else(planned, times):
    """Without workers, the trainer fetches between its steps."""
    compare(planned, ([3, 1, 2], 2, 0, None), (times, 4, 0, None), ([], 1, 0, None))


def test_even(planned):
    """Batches that all take as long: too few workers, just enough, too many."""
    compare(
        planned, *[([4] * 9, step, workers, 2) for step in (0, 1, 4, 9) for workers in (1, 2, 5)]
    )


@points(3)
def test_slow_batch(planned):
    """A slow batch holds up the batches after it, its worker, and what nobody has begun."""
    compare(
        planned,
        ([2, 2, 12, 2, 2, 2, 2, 2, 2, 2, 2, 2], 1, 3, 2),
        ([9, 1, 1, 1, 1, 1, 1, 1], 1, 2, 1),
        ([9, 1, 1, 1, 1, 1, 1, 1], 1, 2, 3),
    )


def test_slow_trainer(planned):
    """With a slow trainer, the lead is what bounds the workers."""
    compare(planned, ([1] * 9, 7, 2, 1), ([1] * 9, 7, 2, 2), ([1] * 14, 7, 3, 3))


def test_free_batches(planned):
    """Batches that take no time, and a trainer that takes none."""
    compare(planned, ([0, 3, 0, 0, 5, 0], 0, 2, 1), ([0] * 6, 2, 2, 2), ([0, 2, 0], 1, 0, None))


def test_any(planned, times):
    """Any times, workers and leads."""
    compare(
        planned,
        *[
            (times, step, workers, factor)
            for step in (0, 3, 6)
            for workers in (1, 2, 3, 4)
            for factor in (1, 2, 3)
        ],
        ([], 3, 2, 2),
    )
