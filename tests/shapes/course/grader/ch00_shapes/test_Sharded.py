"""Checks of `Sharded`: who yields what, in a DataLoader with and without workers."""

import pytest

from grader import assert_equal, gate


@pytest.fixture
def n():
    return 11


@pytest.fixture
def workers():
    return 2


@gate
def test_alone(loaded, n):
    """Without workers all numbers come, in order."""
    found = loaded.ask(n, 0).value
    assert_equal([batch.tolist() for batch in found["batches"]][:2], [[0, 1], [2, 3]])
    assert_equal(sum(len(batch) for batch in found["batches"]), n)


def test_each_once(loaded, n):
    """With two workers each number comes once."""
    numbers = sorted(number for batch in loaded.value["batches"] for number in batch.tolist())
    assert_equal(numbers, list(range(n)))


def test_by_remainder(loaded):
    """Worker 0 yields the even numbers, worker 1 the odd ones; the loader takes turns."""
    batches = [batch.tolist() for batch in loaded.value["batches"]]
    assert_equal(batches[:4], [[0, 2], [1, 3], [4, 6], [5, 7]])


def test_workers_did_it(loaded):
    """Two processes made the batches, and the main process made none."""
    assert_equal((loaded.value["processes"], loaded.value["in the main process"]), (2, False))


def test_any_length(loaded):
    """Fewer numbers than workers, and none at all, are no trouble."""
    assert_equal([b.tolist() for b in loaded.ask(1, 2).value["batches"]], [[0]])
    assert_equal(loaded.ask(0, 2).value["batches"], [])
