"""Checks of `MiniLoader`: real workers, whose every fetch is noted."""

import pytest
import torch

from grader import assert_equal, assert_holds, claimed, gate

SIZES = (3, 1, 4, 2, 1, 5, 2)


@pytest.fixture
def batches(rng):
    """Seven batches of indices, of different sizes; none occurs twice."""
    return [part.tolist() for part in torch.randperm(sum(SIZES), generator=rng).split(SIZES)]


def tens(batches):
    return [[10 * index for index in batch] for batch in batches]


@gate
def test_one_worker(mini_pass, batches):
    """One worker delivers all batches."""
    assert_equal(mini_pass.ask(batches, 1, False).value["batches"], [tens(batches)])


def test_order(mini_pass, mini_slow_first, mini_nothing, batches):
    """The sampler's order, pass after pass; slow batches are waited for, errors come in turn."""
    for fails in (False, True):
        expected = [[0], "OneWord" if fails else [10], [20], [30]]
        got = mini_slow_first.ask(fails).value["order"]
        assert_equal(got, expected, f"Batch 0 is slow; batch 1 fails: {fails}.")
    for workers, some, twice in ((2, batches, True), (3, batches, False), (2, [], False)):
        got = mini_pass.ask(some, workers, twice).value["batches"]
        for number, one in enumerate(got):
            assert_equal(one, tens(some), f"{workers} workers, pass {number + 1}.")
    got = mini_nothing.ask(2).value
    assert_equal(got, [None] * 3, "Three batches, for each of which `collate_fn` returned None.")


def test_side_by_side(mini_slow_first):
    """While one worker is at a slow batch the other fetches all of its own."""
    got = mini_slow_first.ask(False).value["beside"]
    assert_equal(got, [[True]], "Worker 1 did not fetch batches 1 and 3 while batch 0 was made.")


@claimed
def test_who_works(mini_pass, mini_slow_first, batches):
    """Batch k comes whole from worker k % num_workers, and none from the main process."""
    got = mini_slow_first.ask(False).value["workers"]
    assert_equal(got, [0, 1, 0, 1], "Who fetched batches 0 to 3, while batch 0 is slow.")
    for workers, twice in ((2, True), (3, False)):
        got = mini_pass.ask(batches, workers, twice).value
        expected = [[number % workers for number in range(len(batches))]] * (3 if twice else 1)
        assert_holds(not got["main fetched"], "The main process fetched a sample itself.")
        assert_equal(got["workers"], expected, f"Who collated, {workers} workers.")


def test_lead(mini_lead):
    """num_workers × prefetch_factor batches are under way from the start, and not one more."""
    for workers, factor, length in ((2, 3, None), (1, None, 4)):
        got = mini_lead.ask(workers, factor, 3, length).value
        lead = workers * (factor or 2)
        drawn = [lead + step if length is None else min(lead + step, length) for step in range(4)]
        case = f"{workers} workers, prefetch_factor {factor}. "
        assert_equal(got["drawn"], drawn, case + "Drawn after `iter` and after each `next`.")
        assert_equal(got["fetched"], drawn[-1], case + "Samples fetched by then.")


def test_late(mini_late):
    """Batches that wait in the queue are whole, however late they are asked for."""
    assert_equal(mini_late.ask(2).value, [[10 * n, 10 * n + 10] for n in range(4)])


def test_errors(mini_error):
    """An error comes in its turn, with its type and the worker's traceback; then it goes on."""
    told = ["Traceback", "in cannot_read", "sample 2 is"]
    cases = (
        ("own", "dataset", 2, ["OneWord", told]),
        ("lookup", "collate", 2, ["LookupError", told]),
        ("two words", "dataset", 1, ["RuntimeError", told]),
    )
    for kind, where, factor, expected in cases:
        got = mini_error.ask(kind, where, factor).value
        case = f"{kind}, in the {where}; prefetch_factor {factor}."
        assert_equal(got["seen"], [[0], expected, [30], [40], [50]], case)
        assert_equal(got["left"], 0, "Workers left after `close`.")


def test_killed(mini_killed):
    """When a worker is killed, `next` raises `RuntimeError` instead of waiting for it."""
    assert_equal(mini_killed.ask(2, False).value, "RuntimeError", "What came last.")
    got = mini_killed.ask(2, True).value
    assert_equal(got, "RuntimeError", "What came last, where a tensor was lost with its worker.")


def test_end(mini_end):
    """At the end, after `close` and when dropped, every worker has left by itself."""
    for how, large in (("exhausted", False), ("closed", True), ("dropped", False)):
        got = mini_end.ask(how, large).value
        case = f"The pass is {how}; batches are {'large' if large else 'small'}. "
        assert_equal(got["left"], 0, case + "Workers left.")
        assert_equal(got["codes"], [0, 0], case + "Exit codes.")
        after = [] if how == "dropped" else ["nothing"] * 2
        assert_equal(got["after"], after, case + "What `next` gives afterwards.")
    got = mini_end.ask("closed unread", False).value
    case = "The pass is closed before its first `next`. "
    assert_equal(got, {"codes": [0, 0], "left": 0}, case + "Exit codes, and workers left.")


def test_begun(mini_begun):
    """After `close`, workers finish the batch that they are at and begin no other."""
    fetched = mini_begun.ask(2).value
    rows = ("expected", "4 at most: two workers, two samples each"), ("got", str(fetched))
    assert_holds(fetched <= 4, "Samples of batches that nobody had begun were fetched.", *rows)
