"""Checks of `evaluate`: against the file that was dealt out, and what the ranks said to each other."""

import math

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_holds,
    assert_same_bits,
    claimed,
    gate,
    points,
    whole_numbers,
)
from grader.ch10_sharding.layouts import kind_of

RANKS = 3
LENGTHS = [2, 3, 1, 4, 6, 2, 3]
"""Of seven samples on three ranks the first two are dealt out twice. The longest is rank 1's."""

QUOTIENT = "whole numbers add up exactly, and are divided once"


def drawn(rng, lengths):
    """Return the file's samples: whole numbers, large ones in those that come twice."""
    numbers = [whole_numbers(rng, (size,), 1, 9, dtype=torch.float64) for size in lengths]
    return [sample + 40 * (at < 2) for at, sample in enumerate(numbers)]


def dealt(samples, ranks, behind=77.0):
    """Return the case that a probe takes: by rank its rows and their lengths, and how many samples.

    Some ranks have a wider tensor than their rows need, and `behind` stands where no token is.
    """
    rows = -(-len(samples) // ranks)
    parts = []
    for rank in range(ranks):
        mine = [samples[(row * ranks + rank) % len(samples)] for row in range(rows)]
        width = max(map(len, mine)) + 2 * (rank % 2)
        outputs = torch.full((rows, width), behind, dtype=torch.float64)
        for row, sample in zip(outputs, mine, strict=True):
            row[: len(sample)] = sample
        parts.append([outputs, torch.tensor([len(sample) for sample in mine])])
    return [parts, len(samples)]


@pytest.fixture
def samples(rng):
    return drawn(rng, LENGTHS)


@pytest.fixture
def cases(samples):
    return [dealt(samples, RANKS)]


@pytest.fixture
def ranks():
    return RANKS


@pytest.fixture
def members():
    return list(range(RANKS))


def two_parts(got, rank):
    """Return the list and the mean that a rank returned, or fail."""
    result = got["result"]
    if isinstance(result, list | tuple) and len(result) == 2:
        found, mean = result
        if isinstance(found, list | tuple) and all(isinstance(x, torch.Tensor) for x in found):
            return list(found), mean
    what = f"Rank {rank} returns no pair of a list of tensors and a number."
    raise Mismatch(what, (("got", f"a {type(result).__name__}"),))


def rows_of(samples, ranks):
    parts, total = dealt(samples, ranks)
    lengths = [sizes.tolist() for _, sizes in parts]
    return (("on", f"evaluate(outputs, lengths, {total}), lengths by rank: {lengths}"),)


def assert_samples(found, samples):
    for rank, got in enumerate(found):
        mine, _ = two_parts(got, rank)
        with about(*rows_of(samples, len(found))):
            assert_equal(len(mine), len(samples), f"How many samples rank {rank} returns.")
            for at, (one, right) in enumerate(zip(mine, samples, strict=False)):
                with about(of=f"Sample {at} on rank {rank}. "):
                    assert_same_bits(one, right)


def assert_means(found, samples):
    right = torch.cat(samples).mean()
    for rank, got in enumerate(found):
        _, mean = two_parts(got, rank)
        with about(*rows_of(samples, len(found)), of=f"The mean on rank {rank}. "):
            if not isinstance(mean, float):
                raise Mismatch("It is no `float`.", (("got", f"a {type(mean).__name__}"),))
            mean = torch.tensor(mean, dtype=torch.float64)
            assert_close(mean, right, rtol=1e-6, atol=0, because=QUOTIENT)


@gate
def test_pair(evaluated):
    """Returns a list of tensors and a number on every rank."""
    for rank, got in enumerate(evaluated.value[0]):
        two_parts(got, rank)


@points(3)
def test_samples(evaluated, samples):
    """Every rank has the numbers of all samples, in the file's order, none of them twice."""
    assert_samples(evaluated.value[0], samples)


@points(2)
def test_mean(evaluated, samples):
    """The mean counts each token of the file once."""
    assert_means(evaluated.value[0], samples)


def others(rng):
    """Return files that come out even or are short, and those with samples of no token."""
    right = [torch.tensor([float(at >= 2)], dtype=torch.float64) for at in range(10)]
    even, two, one = (drawn(rng, lengths) for lengths in ([3, 1, 2, 2, 5, 1], [2, 4], [3]))
    empty, lone = (drawn(rng, lengths) for lengths in ([3, 0, 2, 0, 0, 1, 2, 0], [0, 0, 0, 2]))
    return [right, even, two, one], [empty, lone]


def asked(evaluated, plain, sparse):
    """Return what came of these files, of all in one run of the ranks."""
    cases = [dealt(samples, RANKS) for samples in plain]
    cases += [dealt(samples, RANKS, math.nan) for samples in sparse]
    return evaluated.ask(cases, RANKS, list(range(RANKS))).value


def test_totals(evaluated, rng):
    """Files of 10, 6, 2 and 1 samples on three ranks: nothing comes twice, or some often; equal samples."""
    plain, sparse = others(rng)
    for found, samples in zip(asked(evaluated, plain, sparse), plain, strict=False):
        assert_samples(found, samples)
        assert_means(found, samples)


def test_no_token(evaluated, rng):
    """Samples without a token, a rank that has no others, and NaN where no token is."""
    plain, sparse = others(rng)
    for found, samples in zip(asked(evaluated, plain, sparse)[len(plain) :], sparse, strict=True):
        assert_samples(found, samples)
        assert_means(found, samples)


def test_groups(evaluated, rng):
    """A group of ranks 1 and 2 alone."""
    samples = drawn(rng, [2, 5, 1])
    [found] = evaluated.ask([dealt(samples, 2)], 3, [1, 2]).value
    with about(("group", "ranks 1 and 2 of 3")):
        assert_samples(found, samples)
        assert_means(found, samples)


@claimed
def test_messages(evaluated, samples, cases):
    """Two all-gathers: one of the lengths, one of the numbers, no row padded beyond the longest."""
    found = evaluated.value[0]
    assert_samples(found, samples)
    rows, longest = len(cases[0][0][0][1]), max(map(len, samples))
    for rank, got in enumerate(found):
        with about(*rows_of(samples, len(found))):
            kinds = [kind_of(name) for name, _ in got["said"]]
            assert_equal(kinds, ["all_gather"] * 2, f"What rank {rank} calls.")
            sizes = [size for _, size in got["said"]]
            most = [8 * rows, 8 * rows * longest]
            for name, size, limit in zip(("lengths", "numbers"), sizes, most, strict=False):
                shown = (("expected", f"{limit} bytes at most"), ("got", f"{size} bytes"))
                assert_holds(size <= limit, f"What rank {rank} brings for the {name}.", *shown)
