"""Checks of `augment`: its numbers are random to the eye, so which are equal is what counts."""

from itertools import combinations

import pytest
import torch

from grader import Mismatch, about, assert_equal, assert_holds, compared, gate, points


@pytest.fixture
def order(rng):
    """Indices of a dataset of 12, each of them twice, in any order."""
    return (torch.randperm(24, generator=rng) % 12).tolist()


NAMES = ("seed", "epoch", "index")


def distinct(augmented, cases):
    """Fail unless all cases have different random numbers; show two that have not, as alike as can be.

    The numbers themselves are the student's own. What is compared is in which of the three those
    differ that have the same.
    """
    groups = {}
    for case, (_, (_, number), _, _) in zip(cases, augmented.ask(cases).value, strict=True):
        groups.setdefault(number, []).append(case[1:])
    alike = {}
    for group in groups.values():
        for one, other in combinations(group, 2):
            different = [name for name, a, b in zip(NAMES, one, other, strict=True) if a != b]
            alike.setdefault(tuple(different), (one, other))
    compared(sorted(alike))
    if alike:
        different = min(alike, key=len)
        one, other = (
            ", ".join(f"{name} {number}" for name, number in zip(NAMES, case, strict=True))
            for case in alike[different]
        )
        rows = (("one", one), ("the other", other))
        raise Mismatch("Two samples have the same random numbers.", rows)


@gate
def test_transformed(augmented):
    """Has the dataset's length, and the transformed samples as elements."""
    for length, index in ((5, 0), (5, 4), (1, 0)):
        found_length, (sample, _), _, _ = augmented.ask([(length, 1, 2, index)]).value[0]
        with about(("call", f"augment(range({length}), transform, seed=1, epoch=2)")):
            assert_equal(found_length, length, "The length.")
            assert_equal(sample, index, f"The sample that the transform was given for [{index}].")


def test_any_order(augmented_again, order):
    """A sample gets the same numbers whenever it is fetched, and however much others draw."""
    in_order = augmented_again.ask(list(range(12))).value
    again = augmented_again.ask(order).value
    same = sum(mine == in_order[index] for index, mine in zip(order, again, strict=True))
    rows = ("fetched first", "0, 1, 2, … 11"), ("fetched then", ", ".join(map(str, order)))
    what = "How many of 24 samples got the numbers that they have when fetched in order."
    with about(*rows):
        assert_equal(same, 24, what)


@points(3)
def test_workers(augmented_loaded, augmented, augmented_elsewhere):
    """The same numbers without workers, with two, with three, and in another run of Python."""
    alone = augmented_loaded.ask(9, 0).value
    assert_equal(
        sorted(alone),
        list(range(9)),
        "The samples that came from a DataLoader without workers, sorted.",
    )
    assert_equal(len(set(alone.values())), 9, "How many different numbers nine samples got.")
    for workers in (2, 3):
        got = augmented_loaded.ask(9, workers).value
        same = sum(got.get(i) == alone[i] for i in range(9))
        what = f"How many of 9 samples got the same numbers with {workers} workers as without."
        assert_equal(same, 9, what)
    cases = [(1, 2, 0), (3, 5, 7)]
    here = [found[1] for found in augmented.ask([(9, *case) for case in cases]).value]
    what = "Another run of Python gives other numbers: there a text has another `hash`."
    assert_holds(augmented_elsewhere.ask(cases).value == here, what)


def test_seed_epoch_index(augmented):
    """Other seed, epoch or index: other numbers. No sum of the three will do."""
    cases = [
        (12_000, seed, epoch, index)
        for seed in (0, 1, 2, 11, 111)
        for epoch in (0, 1, 2, 11, 1_000)
        for index in (0, 1, 2, 11, 111, 1_000, 10_000)
    ]
    distinct(augmented, cases)


def test_large(augmented):
    """Large seeds, epochs and indices count to the last digit, and to the first."""
    cases = [
        (2**31, seed, epoch, index)
        for seed in (0, 1, 2**16, 2**32, 2**32 + 1, 2**48, 2**60 - 1, 2**60)
        for epoch in (0, 1, 2**16, 10**6, 2**31 - 1)
        for index in (0, 1, 2**10, 2**16, 10**6, 2**20, 2**31 - 2)
    ]
    distinct(augmented, cases)


def test_lazily(augmented):
    """Fetches a sample when it is asked for, and no other."""
    _, _, early, fetched = augmented.ask([(1000, 1, 2, 600)]).value[0]
    with about(("program", "augmented = augment(dataset, transform, 1, 2)\naugmented[600]")):
        assert_equal(early, [], "The samples that the first line fetched.")
        assert_equal(fetched, [600], "The samples that were fetched in all.")


def test_global_state(augmented_states):
    """Neither depends on the global random state nor moves it."""
    got = augmented_states.ask().value
    what = "A sample's numbers differ after torch.manual_seed(1) and torch.manual_seed(2)."
    assert_holds(got["same"], what)
    assert_holds(all(got["left"]), "Fetching a sample moved torch's global generator.")
