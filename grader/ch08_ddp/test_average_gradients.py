"""Checks of `average_gradients`: against the weighted mean, computed on the grader's side."""

import pytest
import torch

from grader import assert_close, assert_equal, assert_same_bits, gate

ROUNDING = "float64, in any order of operations"
SHAPES = ((), (3,), (2, 3), (0, 2), (4, 1))


@pytest.fixture
def values(rng):
    return [torch.randn(shape, generator=rng, dtype=torch.float64) for shape in SHAPES]


@pytest.fixture
def samples():
    return [3, 1, 4]


@pytest.fixture
def grads(rng, samples):
    return drawn(rng, len(samples))


@pytest.fixture
def frozen():
    return []


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


def compare(got, grads, samples, frozen=()):
    for rank, found in enumerate(got):
        for at in range(len(SHAPES)):
            if at in frozen:
                continue
            mine = found["grads"][at]
            assert_equal(
                mine is not None,
                True,
                f"Samples {samples}: whether parameter {at} has a gradient on rank {rank}.",
            )
            assert_close(
                mine, weighted(grads, samples, at), rtol=1e-12, atol=1e-12, because=ROUNDING
            )


@gate
def test_runs(averaged):
    """Returns nothing, and leaves the parameters' values alone."""
    for rank, found in enumerate(averaged.value):
        assert_equal(found["returned"], False, f"Whether rank {rank} returned something.")
        assert_equal(found["values"], True, f"Whether the values on rank {rank} are as they were.")
        assert_equal(found["recorded"], False, f"Whether autograd recorded it on rank {rank}.")


def test_even(averaged, values, rng):
    """As many samples on every rank: the mean over ranks."""
    grads = drawn(rng, 3)
    compare(averaged.ask(values, grads, [2, 2, 2], []).value, grads, [2, 2, 2])


def test_uneven(averaged, grads, samples):
    """Another number of samples on each rank."""
    compare(averaged.value, grads, samples)


def test_no_samples(averaged, values, rng):
    """A rank without samples, which has no gradients, or NaN in them."""
    grads = drawn(rng, 4)
    ranks = [grads[0], [None] * len(SHAPES), grads[2], [g * torch.nan for g in grads[3]]]
    compare(averaged.ask(values, ranks, [2, 0, 5, 0], []).value, grads, [2, 0, 5, 0])


def test_one_has_all(averaged, values, rng):
    """One rank has all samples, and a NaN in its gradient, which stays."""
    grads = drawn(rng, 2)
    ranks = [[g * torch.inf for g in grads[0]], grads[1]]
    grads[1][1][0] = torch.nan  # it has samples: this one is to be seen
    compare(averaged.ask(values, ranks, [0, 7], []).value, grads, [0, 7])


def test_layouts(averaged, values, rng):
    """Gradients that lie in memory in another way on each rank."""
    grads = drawn(rng, 3)
    spread = [torch.stack([g, g - 1], -1)[..., 0] for g in grads[2]]
    ranks = [[g.t().contiguous().t() if g.dim() == 2 else g for g in grads[0]], grads[1], spread]
    compare(averaged.ask(values, ranks, [1, 2, 3], []).value, grads, [1, 2, 3])


def test_frozen(averaged, values, rng):
    """Frozen parameters keep what is in their `.grad`, and are not sent."""
    grads = drawn(rng, 2)
    values[2] = torch.zeros(100, 100)
    for own in grads:
        own[2] = torch.randn(100, 100, generator=rng)
    ranks = [[None, *own[1:]] for own in grads]
    got = averaged.ask(values, ranks, [1, 3], [0, 2]).value
    compare(got, grads, [1, 3], frozen=(0, 2))
    sent = sum(values[at].nbytes for at in (1, 3, 4))
    for rank, found in enumerate(got):
        assert_equal(
            found["grads"][0] is None, True, f"Whether `None` stays `None` on rank {rank}."
        )
        assert_same_bits(found["grads"][2], grads[rank][2])
        assert_equal(
            found["bytes"] <= sent + 10_000,
            True,
            f"Whether about {sent} bytes and a count were sent. It was {found['bytes']}.",
        )
