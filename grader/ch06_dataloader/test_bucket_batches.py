"""Checks of `bucket_batches`: what every epoch must obey, and what must vary over many."""

from bisect import bisect_left
from itertools import combinations, pairwise

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_holds,
    assert_raises,
    compared,
    draw_int,
    gate,
    points,
)

EPOCHS = 400
"""So many that what is random shows itself: the rarest event asked for has a chance of 1 in 12 in
each, and stays away in all 400 with a probability of 8e-16."""


@pytest.fixture
def boundaries():
    return [4, 8, 16, 32, 60]


@pytest.fixture
def max_cells():
    return 67


@pytest.fixture
def lengths(rng):
    """int64 (72,): 37, 20, 10 and 5 samples of four boundaries, in any order; none of the fifth."""
    groups = [(1, 4, 37), (5, 8, 20), (9, 16, 10), (17, 32, 5)]
    parts = [torch.randint(low, high + 1, (n,), generator=rng) for low, high, n in groups]
    for part, (low, high, _) in zip(parts, groups, strict=True):
        part[:2] = torch.tensor([low, high])
    together = torch.cat(parts)
    return together[torch.randperm(72, generator=rng)]


@pytest.fixture
def seed(rng):
    return draw_int(rng, 0, 2**40 - 1)


@pytest.fixture
def epochs():
    return 2


@pytest.fixture
def elsewhere():
    return 1


@pytest.fixture
def given(lengths, boundaries, max_cells, seed, epochs, elsewhere):
    """All inputs by name, to be changed one by one."""
    return {
        "lengths": lengths,
        "boundaries": boundaries,
        "max_cells": max_cells,
        "seed": seed,
        "epochs": epochs,
        "elsewhere": elsewhere,
    }


def bucket_of(lengths, boundaries):
    return [bisect_left(boundaries, length) for length in lengths.tolist()]


def call(lengths, boundaries, max_cells):
    """Return the call as Python; of many lengths, how many there are and of which size."""
    shown = lengths.tolist()
    if len(shown) <= 12:
        given = f"torch.tensor({shown}, dtype={lengths.dtype})"
    else:
        given = f"<{len(shown)} lengths from {min(shown)} to {max(shown)}>"
    return ("call", f"bucket_batches({given}, {list(boundaries)}, {max_cells}, generator)")


def once(epoch, count):
    """Compare that each index comes once. Which are missing is chance; how many are is not."""
    indices = [index for batch in epoch for index in batch]
    missing = sorted(set(range(count)) - set(indices))
    other = sorted({index for index in indices if indices.count(index) > 1 or index >= count})
    assert_equal(len(missing), 0, "How many indices are in no batch of an epoch.")
    assert_equal(len(other), 0, "How many indices come twice, or are of no sample.")


def examine(bucketed, given, **other):
    """Compare what every epoch must obey: indices, buckets, sizes."""
    inputs = {**given, **other}
    lengths, boundaries, max_cells = (
        inputs[name] for name in ("lengths", "boundaries", "max_cells")
    )
    bucket = bucket_of(lengths, boundaries)
    for epoch in bucketed.ask(**inputs).value["epochs"]:
        with about(call(lengths, boundaries, max_cells)):
            once(epoch, len(lengths))
            sizes = {number: [] for number in range(len(boundaries))}
            for batch in epoch:
                if not batch:
                    raise Mismatch("A batch is empty.")
                found = sorted({boundaries[bucket[index]] for index in batch})
                what = f"How many boundaries the samples of one batch have: {found}."
                assert_equal(len(found), 1, what)
                sizes[bucket[batch[0]]].append(len(batch))
            for number, boundary in enumerate(boundaries):
                full, rest = divmod(bucket.count(number), max_cells // boundary)
                assert_equal(
                    sorted(sizes[number], reverse=True),
                    [max_cells // boundary] * full + [rest] * (rest > 0),
                    f"The sizes of the batches of {bucket.count(number)} samples with boundary "
                    f"{boundary}.",
                )


@gate
def test_batches(bucketed, lengths):
    """Returns a list of lists of whole numbers."""
    for epoch in bucketed.value["epochs"]:
        assert_equal(type(epoch).__name__, "list", "The type of what is returned.")
        assert_equal(
            sorted({type(batch).__name__ for batch in epoch}), ["list"], "The types of the batches."
        )
        kinds = sorted({type(index).__name__ for batch in epoch for index in batch})
        assert_equal(kinds, ["int"], "The types of the indices.")


def test_every_index_once(bucketed, lengths):
    """In each epoch every index comes exactly once."""
    for epoch in bucketed.value["epochs"]:
        once(epoch, len(lengths))


@points(4)
def test_buckets(bucketed, given):
    """A batch holds samples of one boundary, as many as fit; one of each boundary may be small."""
    examine(bucketed, given)


def test_odd_data(bucketed, given, lengths, rng):
    """No samples, one, samples of one length, buckets that come out even, any integer dtype."""
    edges = torch.tensor([0, 1, 5, 5, 6, 10, 10, 11, 20])
    for some, boundaries, max_cells in (
        (lengths[:0], [4, 8], 8),
        (torch.tensor([3]), [3], 3),
        (torch.tensor([3, 0, 1]), [3], 5),
        (torch.full((12,), 5), [5, 6, 7], 20),
        (torch.full((12,), 6), [5, 6, 7], 13),
        (torch.tensor([2, 2, 2, 6, 6, 2, 2]), [4, 8], 19),
        (torch.full((7,), 7).to(torch.int32), [1, 5, 8], 1000),
        (edges, [5, 10, 20], 20),
        (edges.to(torch.uint8), [1, 6, 11, 30], 60),
        (edges.to(torch.uint8), [6, 300], 900),
        (torch.stack([edges, edges * 9], 1)[:, 0], [5, 10, 20], 40),
        (torch.randint(1, 600, (200,), generator=rng), [50, 300, 301, 600], 1200),
    ):
        examine(bucketed, given, lengths=some, boundaries=boundaries, max_cells=max_cells)


def test_too_long(bucketed, given, lengths):
    """A sample longer than the last boundary raises `ValueError`."""
    for length, boundaries in ((61, [4, 60]), (5, [4]), (2**31, [4, 60])):
        some = torch.cat([lengths[lengths <= 4], torch.tensor([length]), torch.tensor([1])])
        evidence = bucketed.ask(**{**given, "lengths": some, "boundaries": boundaries})
        what = f"A length of {length}, and the last boundary is {boundaries[-1]}."
        assert_raises(evidence, "ValueError", what, call(some, boundaries, 67))
    examine(bucketed, given, lengths=torch.tensor([60, 1, 60]), boundaries=[4, 60])


def many(bucketed, given):
    return bucketed.ask(**{**given, "epochs": EPOCHS}).value["epochs"]


def test_who_meets_whom(bucketed, given, lengths, boundaries):
    """Over many epochs every two samples of a boundary meet in some batches and not in others."""
    bucket, met = bucket_of(lengths, boundaries), {}
    for epoch in many(bucketed, given):
        for batch in epoch:
            for pair in combinations(sorted(batch), 2):
                met[pair] = met.get(pair, 0) + 1
    pairs = [p for p in combinations(range(len(lengths)), 2) if bucket[p[0]] == bucket[p[1]]]
    never = sum(pair not in met for pair in pairs)
    always = sum(met.get(pair) == EPOCHS for pair in pairs)
    what = f"Of {len(pairs)} pairs of samples of a boundary, in {EPOCHS} epochs: "
    assert_equal(never, 0, what + "how many never met.")
    assert_equal(always, 0, what + "how many met in every epoch.")


def test_when_they_come(bucketed, given, lengths, boundaries):
    """Over many epochs a batch of any boundary, small or full, comes at any place."""
    bucket = bucket_of(lengths, boundaries)
    places, mixed, follows = {number: set() for number in range(4)}, set(), set()
    small_places = {number: set() for number in range(4)}
    for epoch in many(bucketed, given):
        assert_holds(all(epoch), "A batch is empty.")
        numbers = [bucket[batch[0]] for batch in epoch]
        follows.update(pairwise(numbers))
        for number in range(4):
            mine = [place for place, other in enumerate(numbers) if other == number]
            what = f"In some epoch no batch begins with a sample of boundary {boundaries[number]}."
            assert_holds(mine, what)
            places[number].update(mine)
            if mine[-1] - mine[0] >= len(mine):
                mixed.add(number)
            sizes = [len(epoch[place]) for place in mine]
            small_places[number].add(mine[sizes.index(min(sizes))])
    # what is chance where epochs are few is told by whether there is any
    apart = (bool(mixed), len(follows) == 16)
    compared(([len(one) for one in places.values()], apart))
    for number in range(4):
        what = f"In {EPOCHS} epochs of twelve batches, of boundary {boundaries[number]}: "
        assert_equal(len(places[number]), 12, what + "at how many places a batch came.")
        came = len(small_places[number])
        assert_equal(came, 12, what + "at how many places the small batch came.")
    what = "How many pairs of boundaries came one right after the other, of sixteen."
    assert_equal(len(follows), 16, what)
    what = "How many of four boundaries had another's batch between theirs."
    assert_equal(len(mixed), 4, what)


def test_generator(bucketed, given):
    """The generator decides everything; global streams are neither read nor moved."""
    one = bucketed.ask(**{**given, "epochs": 3, "elsewhere": 1}).value
    two = bucketed.ask(**{**given, "epochs": 3, "elsewhere": 2}).value
    batches = [[sorted(map(sorted, epoch)) for epoch in found["epochs"]] for found in (one, two)]
    assert_holds(batches[0] == batches[1], "The same seed gave other batches.")
    assert_holds(one["epochs"] == two["epochs"], "The same seed gave another order of batches.")
    assert_holds(one["epochs"][0] != one["epochs"][1], "The second epoch was the first.")
    other = bucketed.ask(**{**given, "seed": 12345}).value["epochs"]
    assert_holds(other[0] != one["epochs"][0], "Another seed gave the same epoch.")
    assert_holds(one["global streams"], "A global stream of random numbers was moved.")
