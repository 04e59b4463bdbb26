"""Checks of `fill_unused`: what any rank's graph reaches, and who gets zeros."""

import pytest
import torch

from grader import about, assert_equal, assert_holds, assert_same_bits, claimed, gate, points


@pytest.fixture
def values(rng):
    """Five parameters. One is float32; 1, which is used, has the same numbers as 3, which is not."""
    shapes = [(2, 3), (4,), (4,), (4,), ()]
    values = [torch.randn(shape, generator=rng, dtype=torch.float64) for shape in shapes]
    values[2] = values[2].float()
    values[3] = values[1].clone()
    return values


EVERY, SOME = [[0, 1, 2, 3, 4]] * 2, [[0, 1], [4, 1, 2]]
"""What each of two ranks uses: all, or all but 3."""

PLAIN = ["plain"] * 2

ALL = list(range(5))


def case(uses, kinds=PLAIN, stale=(), frozen=(), listed=ALL):
    """Return a case as the probe takes it."""
    return (uses, list(kinds), list(stale), list(frozen), list(listed))


@pytest.fixture
def cases():
    return [case(SOME)]


def judge_used(found, uses, frozen=(), listed=ALL):
    used = [any(at in own for own in uses) and at not in frozen for at in listed]
    for rank, [got] in enumerate(found):
        what = f"What rank {rank} said of the listed parameters."
        rows = [(f"rank {n} uses", repr(own)) for n, own in enumerate(uses)]
        with about(*rows, ("listed", repr(listed))):
            assert_equal(got["used"], used, what)


@gate
def test_kind(filled, values):
    """Returns a list of booleans; true where all ranks use all."""
    for [got] in filled.ask(values, [case(EVERY)]).value:
        used = got["used"]
        if isinstance(used, list):
            names = [type(one).__name__ for one in used]
            assert_equal(names, ["bool"] * 5, "The types of what is returned, of five parameters.")
        assert_equal(used, [True] * 5, "What is returned where all ranks use all five.")


def test_used_anywhere(filled):
    """A parameter counts as used if the loss of any rank depends on it."""
    judge_used(filled.value, SOME)


def test_who_is_who(filled, values):
    """Two parameters are two, also over the same memory, or where neither has an element."""
    for uses in (SOME, [[0, 3], [4, 3, 2]]):
        judge_used(filled.ask(values, [case(uses, ["one memory"] * 2)]).value, uses)
        empty = [torch.empty(0).double() if at in (1, 3) else x for at, x in enumerate(values)]
        judge_used(filled.ask(empty, [case(uses)]).value, uses)


@points(4)
def test_zeros(filled, values):
    """Zeros where another rank uses a parameter and this one does not; nothing elsewhere."""
    for rank, [got] in enumerate(filled.value):
        others = set(SOME[1 - rank]) - set(SOME[rank])
        there = [grad is not None for grad in got["grads"]]
        what = f"Used by rank 0: {SOME[0]}, by rank 1: {SOME[1]}. Which of 0 to 4 have a `.grad` "
        assert_equal(there, [at in others for at in range(5)], f"{what}on rank {rank}.")
        for at in others:
            with about(of=f"The `.grad` of parameter {at} on rank {rank}. "):
                assert_same_bits(got["grads"][at], torch.zeros_like(values[at]))
        assert_holds(not any(got["flags"]), "The zeros require grad.")


def test_stale(filled, values):
    """A `.grad` from before says nothing about use, and stays as it is."""
    found = filled.ask(values, [case(SOME, stale=[0, 2, 3])]).value
    judge_used(found, SOME)
    for rank, [got] in enumerate(found):
        for at in (0, 2, 3):
            with about(of=f"The `.grad` from before of parameter {at} on rank {rank}. "):
                assert_same_bits(got["grads"][at], torch.full_like(values[at], 7.0))


def test_listed_twice(filled, values):
    """A parameter that is listed twice has two entries, and both are right."""
    listed = [*ALL, 0, 4]
    judge_used(filled.ask(values, [case(SOME, listed=listed)]).value, SOME, listed=listed)


def test_ends(filled, values):
    """A detached use is none, a frozen parameter is not used, and a loss may have no graph."""
    uses = [[], [1, 2]]
    kinds = ["plain", "detached"]
    found = filled.ask(values, [case(uses, kinds, frozen=[2, 3])]).value
    judge_used(found, uses, frozen=[2])
    for rank, [got] in enumerate(found):
        there = [grad is not None for grad in got["grads"]]
        what = f"Rank 0 uses none, rank 1 uses 1 and 2, of which 2 is frozen. Which of 0 to 4 have a `.grad` on rank {rank}."
        assert_equal(there, [False, rank == 0, False, False, False], what)


def test_deep(filled, values):
    """Graphs that are thousands of nodes deep."""
    uses = [[0], [3]]
    judge_used(filled.ask(values, [case(uses, ["deep"] * 2)]).value, uses)


def test_shared(filled, values):
    """Graphs whose nodes can be reached in more ways than anyone can walk."""
    uses = [[1, 3], [3, 4]]
    judge_used(filled.ask(values, [case(uses, ["wide"] * 2)]).value, uses)


@claimed
def test_one_message(filled):
    """One all-reduce."""
    judge_used(filled.value, SOME)
    for rank, [got] in enumerate(filled.value):
        names = [name for name, _ in got["events"]]
        assert_equal(names, ["all_reduce"], f"What rank {rank} sent.")
