"""Checks of `ring_all_reduce`: sums, and the messages that they were made of."""

import pytest
import torch

from grader import (
    assert_close,
    assert_equal,
    assert_holds,
    assert_same_bits,
    assert_tensor,
    claimed,
    gate,
    whole_numbers,
)

RANKS = 4
AWKWARD = ((), (1,), (3,), (5,), (2, 7), (0,), (3, 1, 6))


def whole(rng, shape, ranks=RANKS):
    """Return whole numbers as float64 for each rank, whose sums are exact."""
    return [whole_numbers(rng, shape, -999, 998, dtype=torch.float64) for _ in range(ranks)]


@pytest.fixture
def cases(rng):
    """Multiples of four, awkward sizes, whole numbers, random float32: asked for at once."""
    return [
        whole(rng, (12,)),
        *(whole(rng, shape) for shape in AWKWARD),
        [torch.randint(-(2**40), 2**40, (9,), generator=rng) for _ in range(RANKS)],
        [torch.randn(37, generator=rng) for _ in range(RANKS)],
    ]


def column(found, number):
    return [of_rank[number] for of_rank in found]


def compare(found, number, tensors):
    for got in column(found, number):
        assert_same_bits(got["sum"], sum(tensors))


@gate
def test_shape_and_dtype(ringed, cases):
    """Returns a tensor of the shape and dtype of `x`."""
    for [found, *_], x in zip(ringed.value, cases[0], strict=True):
        assert_tensor(found["sum"], dtype=x.dtype, shape=x.shape)


def test_sum(ringed, cases):
    """Twelve numbers on four ranks; `x` stays as it is."""
    compare(ringed.value, 0, cases[0])
    for rank, got in enumerate(column(ringed.value, 0)):
        assert_holds(got["untouched"], f"The `x` of rank {rank} was changed.")


def test_sizes(ringed, cases):
    """Sizes that are no multiple of four, or less than four; nothing at all; whole numbers."""
    for number in range(1, len(AWKWARD) + 2):
        compare(ringed.value, number, cases[number])


def test_layouts(ringed, rng):
    """Tensors that lie in memory in another way on each of three ranks."""
    matrix = whole(rng, (5, 4), 3)
    matrix[1] = matrix[1].t().contiguous().t()
    wide = whole(rng, (5, 4, 2), 3)
    cube = [
        wide[0][..., 1],
        wide[1][..., 0],
        wide[2].movedim(0, 1).contiguous().movedim(1, 0)[..., 1],
    ]
    row = [part[:1].expand(5, 4) for part in whole(rng, (5, 4), 3)]
    groups = [matrix, cube, row]
    found = ringed.ask(groups).value
    for number, tensors in enumerate(groups):
        compare(found, number, tensors)


def test_few_ranks(ringed, rng):
    """Two ranks, and one alone."""
    for ranks in (2, 1):
        tensors = whole(rng, (7,), ranks)
        compare(ringed.ask([tensors]).value, 0, tensors)


def test_same_bits(ringed, cases):
    """Sums of `float32` have the same bits on all ranks."""
    found = column(ringed.value, -1)
    exact = sum(x.double() for x in cases[-1])
    for got in found:
        assert_close(
            got["sum"].double(), exact, rtol=1e-6, atol=1e-5, because="three roundings of float32"
        )
        assert_same_bits(got["sum"], found[0]["sum"])


@claimed
def test_messages(ringed, cases):
    """At most 2(n-1) messages of each rank, all of them to the next, by no other means."""
    judge(ringed, cases, lengths=False)


@claimed
def test_bytes(ringed, cases):
    """No message is longer than an n-th, rounded up."""
    judge(ringed, cases, lengths=True)


def judge(ringed, cases, *, lengths):
    compare(ringed.value, 0, cases[0])  # who sends nothing has no cheap sum, but none
    for number, tensors in enumerate(cases):
        what = f"x of shape {tuple(tensors[0].shape)}, rank"
        longest = -(-tensors[0].numel() // RANKS) * tensors[0].itemsize
        for rank, got in enumerate(column(ringed.value, number)):
            if lengths:
                most = max((size for _, size in got["sent"]), default=0)
                rows = ("expected", f"{longest} bytes at most"), ("got", f"{most} bytes")
                assert_holds(most <= longest, f"{what} {rank}: the longest message.", *rows)
            else:
                assert_equal(got["others"], [], f"{what} {rank}: calls besides send and recv.")
                others = sorted({to for to, _ in got["sent"]} - {(rank + 1) % RANKS})
                assert_equal(others, [], f"{what} {rank}: ranks it sent to, besides the next.")
                count, most = len(got["sent"]), 2 * (RANKS - 1)
                rows = ("expected", f"{most} at most"), ("got", str(count))
                assert_holds(count <= most, f"{what} {rank}: the number of messages.", *rows)
