"""Checks of `augment`: its numbers are random to the eye, so which are equal is what counts."""

import pytest
import torch

from grader import assert_equal, assert_holds, gate


@pytest.fixture
def order(rng):
    """Indices of a dataset of 12, each of them twice, in any order."""
    return (torch.randperm(24, generator=rng) % 12).tolist()


def distinct(augmented, cases):
    """Fail unless all cases have different random numbers; name the first two that have not."""
    seen = {}
    for case, (_, (_, number), _, _) in zip(cases, augmented.ask(cases).value, strict=True):
        other = seen.setdefault(number, case[1:])
        assert_equal(
            [other],
            [case[1:]],
            "Two samples have the same numbers: (seed, epoch, index)",
        )


@gate
def test_transformed(augmented):
    """Has the dataset's length, and the transformed samples as elements."""
    for length, index in ((5, 0), (5, 4), (1, 0)):
        found_length, (sample, _), _, _ = augmented.ask([(length, 1, 2, index)]).value[0]
        assert_equal((found_length, sample), (length, index), "Length, and the sample.")


def test_any_order(augmented_again, order):
    """A sample gets the same numbers whenever it is fetched, and however much others draw."""
    in_order = augmented_again.ask(list(range(12))).value
    assert_equal(augmented_again.ask(order).value, [in_order[index] for index in order])


def test_workers(augmented_loaded, augmented, augmented_elsewhere):
    """The same numbers without workers, with two, with three, and in another run of Python."""
    alone = augmented_loaded.ask(9, 0).value
    assert_equal(sorted(alone), list(range(9)), "The samples.")
    assert_equal(len(set(alone.values())), 9, "How many different numbers they got.")
    for workers in (2, 3):
        got = augmented_loaded.ask(9, workers).value
        assert_equal([got[i] == alone[i] for i in range(9)], [True] * 9, f"{workers} workers.")
    cases = [(1, 2, 0), (3, 5, 7)]
    here = [found[1] for found in augmented.ask([(9, *case) for case in cases]).value]
    what = "Python's hash of a text is another one in another run. Are the numbers the same there?"
    assert_equal(augmented_elsewhere.ask(cases).value == here, True, what)


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
    assert_equal((early, fetched), ([], [600]), "Fetched before, and in all.")


def test_global_state(augmented_states):
    """Neither depends on the global random state nor moves it."""
    got = augmented_states.ask().value
    assert_holds(got["same"], "The numbers depend on the global state.")
    assert_equal(got["left"], [True, True], "The global state was moved.")
