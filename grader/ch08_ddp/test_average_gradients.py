"""Checks of `average_gradients`: against the weighted mean, computed on the grader's side."""

import pytest
import torch

from grader import about, assert_close, assert_holds, assert_same_bits, gate, points

ROUNDING = "float64, in any order of operations"
SHAPES = ((5,), (3,), (2, 3), (0, 2), (4, 1))


@pytest.fixture
def values(rng):
    return [torch.randn(shape, generator=rng, dtype=torch.float64) for shape in SHAPES]


@pytest.fixture
def cases(rng):
    """As many samples on each of three ranks; then another number on each, too many for bfloat16."""
    return [(drawn(rng, 3), [2, 2, 2], []), (drawn(rng, 3), [3003, 1001, 4004], [])]


@pytest.fixture
def without(rng):
    """Four ranks of which two have no samples; then only one has some, with a NaN among them."""
    some, one = drawn(rng, 4), drawn(rng, 4)
    one[1][1][0] = torch.nan
    nothing = [None] * len(SHAPES)
    return [
        ([some[0], nothing, some[2], times(some[3], torch.nan)], [2, 0, 5, 0], []),
        ([times(one[0], torch.inf), one[1], nothing, one[3]], [0, 7, 0, 0], []),
    ]


def times(grads, factor):
    return [grad * factor for grad in grads]


def drawn(rng, ranks):
    """Return gradients for each rank, large enough for a wrong weight to show."""
    return [
        [torch.randn(shape, generator=rng, dtype=torch.float64) * 10 for shape in SHAPES]
        for _ in range(ranks)
    ]


def weighted(grads, samples, at):
    """Return what parameter `at` should have."""
    parts = [n * g[at] for n, g in zip(samples, grads, strict=True) if n]
    return sum(parts) / sum(samples)


def compare(averaged, values, cases, number):
    grads, samples, frozen = cases[number]
    for rank, of_rank in enumerate(averaged.ask(values, cases).value):
        for at in range(len(SHAPES)):
            if at in frozen:
                continue
            mine = of_rank[number]["grads"][at]
            what = f"With {samples} samples on the ranks, parameter {at} has no gradient on rank {rank}."
            assert_holds(mine is not None, what, ("expected", "a tensor"), ("got", "None"))
            where = f"`.grad` of parameter {at} on rank {rank}. "
            with about(("samples", f"{samples}, by rank"), of=where):
                assert_close(
                    mine, weighted(grads, samples, at), rtol=1e-12, atol=1e-12, because=ROUNDING
                )


@gate
def test_runs(averaged):
    """Runs on every rank, and leaves the parameters' values alone."""
    for rank, [found, _] in enumerate(averaged.value):
        assert_holds(found["values"], f"On rank {rank} values of parameters have changed.")


def test_even(averaged, values, cases):
    """As many samples on every rank: the mean over ranks, without a graph of its own."""
    compare(averaged, values, cases, 0)
    for rank, [found, _] in enumerate(averaged.ask(values, cases).value):
        assert_holds(not found["recorded"], f"On rank {rank} autograd recorded the averaging.")


@points(3)
def test_uneven(averaged, values, cases):
    """Another number of samples on each rank."""
    compare(averaged, values, cases, 1)


def test_no_samples(averaged, values, without):
    """A rank without samples, which has no gradients, or NaN in them."""
    compare(averaged, values, without, 0)


def test_one_has_all(averaged, values, without):
    """One rank has all samples, and a NaN in its gradient, which stays."""
    compare(averaged, values, without, 1)


@pytest.fixture
def last_cases(rng):
    """Two ranks: two parameters frozen, one of them large; then other layouts on each rank.

    One parameter has no dimensions. In the last case rank 0 has no samples and no gradients.
    """
    halves, grads = drawn(rng, 2), drawn(rng, 2)
    for own in (*halves, *grads):
        own[1] = torch.randn((), generator=rng, dtype=torch.float64)
        own[2] = torch.randn(100, 100, generator=rng, dtype=torch.float64)
    by_columns = [g.t().contiguous().t() if g.dim() == 2 else g for g in grads[0]]
    spread = [torch.stack([g, g - 1], -1)[..., 0] for g in grads[1]]
    return [
        ([[None, *own[1:]] for own in halves], [1, 3], [0, 2]),
        ([by_columns, spread], [1, 3], []),
        ([[None] * len(SHAPES), spread], [0, 3], []),
    ]


@pytest.fixture
def last_values(values):
    # the large one lies in memory by columns
    number, large = values[1][0], torch.zeros(100, 100, dtype=torch.float64).t()
    return [values[0], number, large, *values[3:]]


def test_layouts(averaged, last_values, last_cases):
    """Gradients that lie in memory in another way on each rank."""
    compare(averaged, last_values, last_cases, 1)
    compare(averaged, last_values, last_cases, 2)


def test_frozen(averaged, last_values, last_cases):
    """Frozen parameters keep what is in their `.grad`, and are not sent."""
    compare(averaged, last_values, last_cases, 0)
    sent = sum(last_values[at].nbytes for at in (1, 3, 4))
    for rank, [found, *_] in enumerate(averaged.ask(last_values, last_cases).value):
        what = f"The `.grad` of a frozen parameter on rank {rank}."
        kept = found["grads"][0] is None
        assert_holds(kept, what, ("expected", "None, as before"), ("got", "a tensor"))
        assert_same_bits(found["grads"][2], last_cases[0][0][rank][2])
        expected = f"{sent} bytes of gradients, and 10000 at most for counts"
        rows = ("expected", expected), ("got", f"{found['bytes']} bytes")
        what = f"More was sent by rank {rank} than what is not frozen."
        assert_holds(found["bytes"] <= sent + 10_000, what, *rows)
