"""Checks of `MiniLoader`: real workers, whose every fetch is noted."""

import pytest
import torch

from grader import Mismatch, about, assert_equal, assert_holds, claimed, compared, gate, points

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
    got = mini_pass.ask(batches, 1, False).value["batches"]
    assert_equal(got, [tens(batches)], "The batches of one pass with one worker.")


@points(5)
def test_order(mini_pass, mini_slow_first, batches):
    """The sampler's order, pass after pass; slow batches are waited for."""
    got = mini_slow_first.ask(False).value["order"]
    what = "What four times `next` gave: two workers, batch 0 is slow."
    assert_equal(got, [[0], [10], [20], [30]], what)
    for workers, some, twice in ((2, batches, True), (3, batches, False), (2, [], False)):
        got = mini_pass.ask(some, workers, twice).value["batches"]
        for number, one in enumerate(got):
            what = f"The batches with {workers} workers, in pass {number + 1}."
            assert_equal(one, tens(some), what)


def test_nothing(mini_nothing):
    """A batch may be anything, also `None`."""
    got = mini_nothing.ask(2).value
    assert_equal(got, [None] * 3, "Three batches, for each of which `collate_fn` returned None.")


def test_side_by_side(mini_slow_first):
    """While one worker is at a slow batch the other fetches all of its own."""
    got = mini_slow_first.ask(False).value["beside"]
    what = "Worker 1 did not fetch batches 1 and 3 within three seconds, while batch 0 was made."
    assert_holds(got == [[True]], what)


@claimed
def test_who_works(mini_pass, mini_slow_first, batches):
    """Batch k comes whole from worker k % num_workers, and none from the main process."""
    got = mini_slow_first.ask(False).value["workers"]
    assert_equal(
        got, [0, 1, 0, 1], "Which of two workers fetched batches 0 to 3, while batch 0 is slow."
    )
    for workers, twice in ((2, True), (3, False)):
        got = mini_pass.ask(batches, workers, twice).value
        expected = [[number % workers for number in range(len(batches))]] * (3 if twice else 1)
        assert_holds(not got["main fetched"], "The main process fetched a sample itself.")
        assert_equal(
            got["workers"],
            expected,
            f"Which of {workers} workers collated each batch, in each pass.",
        )


def test_lead(mini_lead):
    """num_workers × prefetch_factor batches are under way from the start, and not one more."""
    for workers, factor, length in ((2, 3, None), (1, None, 4)):
        got = mini_lead.ask(workers, factor, 3, length).value
        lead = workers * (factor or 2)
        drawn = [lead + step if length is None else min(lead + step, length) for step in range(4)]
        more = f", prefetch_factor={factor}" if factor else ""
        with about(("call", f"MiniLoader(dataset, batch_sampler, list, {workers}{more})")):
            what = "How many batches were drawn after `iter`, and after each of three `next`."
            assert_equal(got["drawn"], drawn, what)
            assert_equal(got["fetched"], drawn[-1], "How many samples were fetched by then.")


def test_late(mini_late):
    """Batches that wait in the queue are whole, however late they are asked for."""
    what = "The batches of two workers, asked for 0.3 s after all were fetched, sorted."
    assert_equal(mini_late.ask(2).value, [[10 * n, 10 * n + 10] for n in range(4)], what)


def test_errors(mini_error, mini_slow_first):
    """An error comes in its turn, with its type and the worker's traceback; then it goes on."""
    told = ["Traceback", "in cannot_read", "sample 2 is"]
    cases = (
        ("own", "dataset", 2, ["OneWord", told]),
        ("lookup", "collate", 2, ["LookupError", told]),
        ("two words", "dataset", 1, ["RuntimeError", told]),
    )
    found = [mini_error.ask(*case).value for *case, _ in cases]
    compared([(got["seen"], got["left"]) for got in found])
    for (kind, where, factor, expected), got in zip(cases, found, strict=True):
        raises = f"sample 2, in batch 1, raises {ERRORS[kind]} in the {where}"
        with about(("program", f"one worker, prefetch_factor={factor}; {raises}")):
            for number, (mine, theirs) in enumerate(
                zip(got["seen"], [[0], expected, [30], [40], [50]], strict=True)
            ):
                what = (
                    f"What `next` number {number + 1} gave: a batch, or an error and what it tells."
                )
                assert_equal(mine, theirs, what)
            assert_equal(got["left"], 0, "How many workers are left after `close`.")
    order = mini_slow_first.ask(True).value["order"]
    what = "What four times `next` gave: two workers, batch 0 is slow, batch 1 raises an error."
    assert_equal(order, [[0], "OneWord", [20], [30]], what)


ERRORS = {
    "own": "an exception of one argument",
    "lookup": "a LookupError",
    "two words": "an exception of two arguments",
}


def test_killed(mini_killed):
    """When a worker is killed, `next` raises `RuntimeError` instead of waiting for it."""
    case = "One of two workers was killed in its second batch"
    what = f"{case}. The last that came of `next`:"
    assert_equal(mini_killed.ask(2, False).value, "RuntimeError", what)
    got = mini_killed.ask(2, True).value
    what = f"{case}, and a tensor on its way was lost with it. The last that came of `next`:"
    assert_equal(got, "RuntimeError", what)


def test_end(mini_end):
    """At the end, after `close` and when dropped, every worker has left by itself."""
    for how, large in (("exhausted", False), ("closed", True), ("dropped", False)):
        got = mini_end.ask(how, large).value
        case = f"The pass is {how}; batches are {'large' if large else 'small'}. "
        assert_equal(got["left"], 0, case + "How many workers are left.")
        by_themselves(got["codes"], case)
        after = [] if how == "dropped" else ["nothing"] * 2
        assert_equal(got["after"], after, case + "What `next` gives after it, twice.")
    got = mini_end.ask("closed unread", False).value
    case = "The pass is closed before its first `next`. "
    assert_equal(got["left"], 0, case + "How many workers are left.")
    by_themselves(got["codes"], case)


def by_themselves(codes, case):
    """Fail unless the workers ended by themselves. Which of them did not may be chance."""
    ends = set()
    for code in codes:
        if code is None:
            ends.add("not at all")
        elif code:
            ends.add("by a signal" if code < 0 else "by an error")
    rows = (("exit codes", ", ".join(map(str, codes))),)
    compared(sorted(ends))
    if ends:
        raise Mismatch(f"{case}A worker ended {' or '.join(sorted(ends))}.", rows)


def test_begun(mini_begun):
    """After `close`, workers finish the batch that they are at and begin no other."""
    fetched = mini_begun.ask(2).value
    rows = ("expected", "4 at most: two workers, two samples each"), ("got", str(fetched))
    assert_holds(fetched <= 4, "Samples of batches that nobody had begun were fetched.", *rows)
