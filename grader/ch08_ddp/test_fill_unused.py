"""Checks of `fill_unused`: what any rank's graph reaches, and who gets zeros."""

import pytest
import torch

from grader import assert_equal, assert_holds, assert_same_bits, claimed, gate


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


@pytest.fixture
def cases():
    """All used; some used; the same with gradients from before. Asked for at once."""
    return [(EVERY, PLAIN, [], []), (SOME, PLAIN, [], []), (SOME, PLAIN, [0, 2, 3], [])]


def judge_used(found, number, uses, frozen=()):
    used = [any(at in own for own in uses) and at not in frozen for at in range(5)]
    for rank, of_rank in enumerate(found):
        what = f"Used by rank 0: {uses[0]}, by rank 1: {uses[1]}. What rank {rank} said of 0 to 4"
        assert_equal(of_rank[number]["used"], [*used, used[0]], f"{what}, and 0 again.")


@gate
def test_kind(filled):
    """Returns a list of booleans; true where all ranks use all."""
    for [got, *_] in filled.value:
        assert_equal([type(one).__name__ for one in got["used"]], ["bool"] * 6, "Types.")
        assert_equal(got["used"], [True] * 6, "What was said where all is used.")


def test_used_anywhere(filled):
    """A parameter counts as used if the loss of any rank depends on it."""
    judge_used(filled.value, 1, SOME)


def test_zeros(filled, values):
    """Zeros where another rank uses a parameter and this one does not; nothing elsewhere."""
    for rank, (_, got, _) in enumerate(filled.value):
        others = set(SOME[1 - rank]) - set(SOME[rank])
        there = [grad is not None for grad in got["grads"]]
        what = f"Used by rank 0: {SOME[0]}, by rank 1: {SOME[1]}. Which of 0 to 4 have a `.grad` "
        assert_equal(there, [at in others for at in range(5)], f"{what}on rank {rank}.")
        for at in others:
            assert_same_bits(got["grads"][at], torch.zeros_like(values[at]))
        assert_holds(not any(got["flags"]), "The zeros require grad.")


def test_stale(filled, values):
    """A `.grad` from before says nothing about use, and stays as it is."""
    judge_used(filled.value, 2, SOME)
    for _, _, got in filled.value:
        for at in (0, 2, 3):
            assert_same_bits(got["grads"][at], torch.full_like(values[at], 7.0))


def test_ends(filled, values):
    """A detached use is none, a frozen parameter is not used, and a loss may have no graph."""
    uses = [[], [1, 2]]
    found = filled.ask(values, [(uses, ["plain", "detached"], [], [2, 3])]).value
    judge_used(found, 0, uses, frozen=[2])
    for rank, [got] in enumerate(found):
        there = [grad is not None for grad in got["grads"]]
        assert_equal(there, [False, rank == 0, False, False, False], "Which have a `.grad`.")


def test_deep(filled, values):
    """Graphs that are thousands of nodes deep."""
    uses = [[0], [3]]
    judge_used(filled.ask(values, [(uses, ["deep", "deep"], [], [])]).value, 0, uses)


def test_shared(filled, values):
    """Graphs whose nodes can be reached in more ways than anyone can walk."""
    uses = [[1, 3], [3, 4]]
    judge_used(filled.ask(values, [(uses, ["wide", "wide"], [], [])]).value, 0, uses)


@claimed
def test_one_message(filled):
    """One all-reduce."""
    judge_used(filled.value, 1, SOME)
    for rank, (_, got, _) in enumerate(filled.value):
        names = [name for name, _ in got["events"]]
        assert_equal(names, ["all_reduce"], f"What rank {rank} sent.")
