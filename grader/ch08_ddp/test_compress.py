"""Checks of `compress`: what arrives, against gradients and against the rule, bucket by bucket."""

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_same_bits,
    claimed,
    gate,
    points,
)

SIZES = [(5, 7), (40,), (), (30, 2), (3,), (64,)]


@pytest.fixture
def values():
    return [torch.zeros(size) for size in SIZES]


@pytest.fixture
def ranks_meet():
    return False


def normal(rng, ranks, steps, spread=1.0):
    """Return random gradients; those of rank r are larger by `spread` to the power of r."""
    return [
        [[torch.randn(size, generator=rng) * spread**rank for size in SIZES] for _ in range(steps)]
        for rank in range(ranks)
    ]


@pytest.fixture
def factors(rng):
    return normal(rng, 2, 3)


def expected(factors, buckets):
    """Return what arrives in each step: the rule, worked out for all ranks in one process."""
    left = [[torch.zeros(size) for size in SIZES] for _ in factors]
    arrived = []
    for step, groups in enumerate(buckets):
        means = [torch.zeros(size) for size in SIZES]
        for rank, mine in enumerate(factors):
            values = [g + e for g, e in zip(mine[step], left[rank], strict=True)]
            for group in groups:
                scale = max(float(values[n].abs().max()) for n in group) / 127
                for n in group:
                    sent = (values[n] / scale).round() * scale if scale else 0 * values[n]
                    left[rank][n] = values[n] - sent
                    means[n] += sent / len(factors)
        arrived.append(means)
    return arrived


def compare(found, factors):
    for number, rank in enumerate(found):
        arrived = expected(factors, rank["buckets"])
        for at, (step, right) in enumerate(zip(rank["steps"], arrived, strict=True), 1):
            for n, (got, mean) in enumerate(zip(step["gradients"], right, strict=True)):
                because = "products and means in float32"
                where = f"Rank {number}, backward {at}, gradient {n}. "
                with about(("buckets", f"{rank['buckets'][at - 1]}"), of=where):
                    assert_close(got, mean, rtol=1e-5, atol=1e-5, because=because)


def grid(rng, ranks, steps):
    """Return gradients on a grid of 1/64, off by 0.3 of a step: never near the middle of two."""
    made = normal(rng, ranks, steps)
    for rank in made:
        base = [torch.randint(-100, 100, size, generator=rng) for size in SIZES]
        for step in rank:
            for n, whole in enumerate(base):
                step[n] = (whole + 0.3) / 64
                step[n].view(-1)[0] = 127 / 64  # every scale is 1/64, whatever the buckets are
    return made


@gate
def test_arrives(compressed_steps, values):
    """A gradient arrives, the same on all ranks."""
    first, second = (rank["steps"][0]["gradients"] for rank in compressed_steps.value)
    for got, other, value in zip(first, second, values, strict=True):
        assert_same_bits(got, other)
        if not bool(got.any()) and value.numel() > 4:
            raise Mismatch("Only zeros arrived.")


def test_one_step(compressed_steps, values, rng):
    """In one step the mean of the rounded gradients arrives."""
    for ranks in (2, 3):
        factors = grid(rng, ranks, 1)
        compare(compressed_steps.ask(values, factors, False).value, factors)


@points(3)
def test_feedback(compressed_steps, values, rng):
    """What rounding left over goes along in the next step, also when buckets were built again."""
    factors = grid(rng, 2, 4)
    compare(compressed_steps.ask(values, factors, False).value, factors)


def test_nothing_is_lost(compressed_steps, values, rng):
    """After any number of steps, all that is missing is half a step of the scale."""
    for spread in (1.0, 100.0):
        factors = normal(rng, 2, 6, spread)
        small = [torch.full(size, 1e-3) for size in SIZES]
        for mine in factors[0]:  # one that is always rounded to zero, at first
            mine[1] = small[1]
        found = compressed_steps.ask(values, factors, False).value
        largest = [max(float(g.abs().max()) for step in rank for g in step) for rank in factors]
        allowed = sum(largest) / len(largest) / 127 / 2 * 1.02
        for n in range(len(SIZES)):
            got = sum(step["gradients"][n].double() for step in found[0]["steps"])
            right = sum(step[n].double() for rank in factors for step in rank) / 2
            because = "half a step of the mean scale"
            with about(of=f"The sum of gradient {n} over six backwards. "):
                assert_close(got, right, rtol=0, atol=allowed, because=because)


def test_zeros(compressed_steps, values, rng):
    """A bucket of zeros arrives as zeros, on a rank and on all."""
    factors = normal(rng, 2, 3)
    for rank, step in ((0, 0), (0, 1), (1, 0), (1, 2)):
        factors[rank][step] = [torch.zeros(size) for size in SIZES]
    found = compressed_steps.ask(values, factors, False).value
    assert not any(bool(g.any()) for rank in range(2) for g in factors[rank][0])
    for rank in found:
        for step in rank["steps"]:
            assert_equal(
                [bool(g.isnan().any()) for g in step["gradients"]], [False] * len(SIZES), "NaNs."
            )
    compare_loosely(found, factors)


def compare_loosely(found, factors):
    """Sums of all steps agree up to a step of the scale."""
    for n in range(len(SIZES)):
        got = sum(step["gradients"][n] for step in found[0]["steps"])
        right = sum(step[n] for rank in factors for step in rank) / 2
        with about(of=f"The sum of gradient {n} over all backwards. "):
            assert_close(got, right, rtol=0, atol=0.03, because="half a step of a scale of 4/127")


@claimed
def test_bytes(compressed_steps, values, factors):
    """A rank says one byte per element, and at most 16 more for each bucket."""
    for number, rank in enumerate(compressed_steps.ask(values, factors, False).value):
        for step, groups in zip(rank["steps"], rank["buckets"], strict=True):
            allowed = sum(value.numel() for value in values) + 16 * len(groups)
            if step["said"] > allowed:
                raise Mismatch(
                    f"Rank {number} sends too much in one backward.",
                    (("allowed", f"{allowed} bytes"), ("sent", f"{step['said']} bytes")),
                )


@claimed
def test_returns_at_once(compressed_steps, values, factors):
    """The hook waits for nobody: a rank computes all gradients though no other has begun."""
    found = compressed_steps.ask(values, factors, True).value
    assert_equal(
        found[1]["came"], len(values), "Gradients that rank 0 computed before rank 1 began."
    )
