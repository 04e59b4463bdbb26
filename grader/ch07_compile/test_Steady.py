"""Checks of `Steady`: values over many steps, and how many graphs they took."""

import pytest
import torch

from grader import Mismatch, about, assert_close, assert_equal, claimed, gate, points

ROUNDING = "a few roundings of float32"
NAMES = ("mean", "debiased mean")


def averages(calls):
    """Return what the exact average gives at each step, in float64."""
    found = []
    for step, (mean, x, decay) in enumerate(calls, 1):
        mean = decay * mean.double() + (1 - decay) * x.double().mean(0)
        found.append((mean, mean / (1 - decay**step)))
    return found


def numbered(rng, rows, decays, dtype=torch.float32, columns=4):
    """Return calls with these rows and decays, in turn; values between 1 and 2, so nothing cancels."""
    count = max(len(rows), len(decays))
    return [
        [
            1 + torch.rand(columns, generator=rng).to(dtype),
            1 + torch.rand(columns, rows[i % len(rows)], generator=rng).to(dtype).t(),
            decays[i % len(decays)],
        ]
        for i in range(count)
    ]


def compare(got, calls):
    for step, (one, expected, call) in enumerate(
        zip(got["calls"], averages(calls), calls, strict=True), 1
    ):
        if len(one["results"]) != 2:
            raise Mismatch(f"Expected a pair at step {step}.", (("got", str(one["results"])),))
        _, x, decay = call
        for name, mine, right in zip(NAMES, one["results"], expected, strict=True):
            right = right.to(call[0].dtype)
            where = f"The {name} of step {step}, for {len(x)} rows of {x.dtype} and decay {decay}. "
            with about(of=where):
                assert_close(mine, right, rtol=1e-6, atol=0, because=ROUNDING)


def assert_graphs(got, expected):
    what = "How many graphs there are after each call."
    assert_equal([one["graphs"] for one in got["calls"]], expected, what)


@pytest.fixture
def mean_and_x(rng):
    return [numbered(rng, [3, 4], [0.5])]


@gate
def test_values(steady_steps, mean_and_x):
    """Returns the mean and the debiased mean, step by step."""
    (got,) = steady_steps.value
    compare(got, mean_and_x[0])


@gate
@claimed
def test_in_the_graph(steady_steps):
    """What is returned came out of the graph."""
    (got,) = steady_steps.value
    found = [one["from the graph"] for one in got["calls"]]
    what = "Whether mean and debiased mean are outputs of a compiled graph, call by call."
    assert_equal(found, [[True, True]] * len(found), what)


@claimed
@points(3)
def test_counter(steady_steps, rng):
    """Twelve steps of the same shape and decay share one graph."""
    calls = numbered(rng, [5] * 12, [0.5])
    (got,) = steady_steps.ask([calls]).value
    compare(got, calls)
    assert_graphs(got, [1] * 12)


@claimed
def test_decay(steady_steps, rng):
    """Decays of all sizes, 0 and whole numbers among them, share one graph."""
    calls = numbered(rng, [3], [0.5, 0.25, 0.9, 0.0, 0.125, 0.75, 0.3, 0])
    (got,) = steady_steps.ask([calls]).value
    compare(got, calls)
    assert_graphs(got, [1] * 8)


@claimed
def test_rows(steady_steps, rng):
    """Any number of rows from 2 on shares one graph; one row and none have at most one each."""
    plans = [[2, 3, 7, 4, 50], [3, 1, 4, 0, 9, 1, 0, 2], [1, 5, 6, 1], [4, 4, 2]]
    limits = [[1] * 5, [1, 2, 2, 3, 3, 3, 3, 3], [1, 2, 2, 2], [1, 1, 1]]
    steps = [numbered(rng, plan, [0.5]) for plan in plans]
    for got, calls, limit in zip(steady_steps.ask(steps).value, steps, limits, strict=True):
        compare(got, calls)
        counts = [one["graphs"] for one in got["calls"]]
        if any(count > most for count, most in zip(counts, limit, strict=True)):
            assert_equal(
                counts, limit, f"Graphs after each call, for {[len(c[1]) for c in calls]} rows."
            )


@claimed
def test_columns(steady_steps, rng):
    """Rows are dynamic in the first graph, columns are not."""
    for columns in (4, 6):
        (got,) = steady_steps.ask([numbered(rng, [3, 5], [0.5], columns=columns)]).value
        symbolic = got["symbolic"][:1]
        sizes = [["dynamic" if one else "a number" for one in both] for both in symbolic]
        assert_equal(sizes, [["dynamic", "a number"]], "Rows and columns of x in the first graph.")


def test_digits(steady_steps, rng):
    """Decays near 1 lose no digits, in `float32` and `float64`."""
    for dtype in (torch.float32, torch.float64):
        calls = numbered(rng, [3, 8, 2], [0.9999, 0.999, 0.9999, 0.99], dtype)
        # an average that begins at zero consists of the new part alone: 1e-4 of x
        begins = [[torch.zeros_like(calls[0][0]), *calls[0][1:]]]
        for given in (calls, begins):
            (got,) = steady_steps.ask([given]).value
            compare(got, given)


def test_two_objects(steady_steps, rng):
    """Each object counts its own steps."""
    steps = [numbered(rng, [3, 4], [0.5, 0.75, 0.5]) for _ in range(3)]
    for got, calls in zip(steady_steps.ask(steps).value, steps, strict=True):
        compare(got, calls)
