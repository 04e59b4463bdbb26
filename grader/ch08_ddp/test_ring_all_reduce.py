"""Checks of `ring_all_reduce`: sums, and the messages that they were made of."""

import pytest
import torch

from grader import (
    about,
    assert_close,
    assert_equal,
    assert_holds,
    assert_same_bits,
    assert_tensor,
    claimed,
    gate,
    points,
    whole_numbers,
)

RANKS = 4
AWKWARD = ((), (1,), (3,), (5,), (2, 7), (0,), (3, 1, 6))


def whole(rng, shape, ranks=RANKS):
    """Return whole numbers as float64 for each rank, whose sums are exact."""
    return [whole_numbers(rng, shape, -999, 998, dtype=torch.float64) for _ in range(ranks)]


@pytest.fixture
def cases(rng):
    """Twelve numbers on each of four ranks, which four divides."""
    return [whole(rng, (12,))]


@pytest.fixture
def odd_cases(rng):
    """Numbers that four does not divide, float32."""
    return [[torch.randn(37, generator=rng) for _ in range(RANKS)]]


def column(found, number):
    return [of_rank[number] for of_rank in found]


def compare(found, number, tensors):
    for rank, got in enumerate(column(found, number)):
        with about(*called(tensors[rank], rank), of="The sum. "):
            assert_same_bits(got["sum"], sum(tensors))
        with about(*called(tensors[rank], rank)):
            what = f"What rank {rank} of {len(tensors)} returns is `x`, or a view of it: no new tensor."
            assert_holds(got["new"], what)


def called(x, rank):
    """Return the row that names a call."""
    kind = f"{str(x.dtype).removeprefix('torch.')}, size {tuple(x.shape)}, stride {x.stride()}"
    return (("on", f"rank {rank}: ring_all_reduce(<{kind}>)"),)


@gate
def test_shape_and_dtype(ringed, cases):
    """Returns a tensor of the shape and dtype of `x`."""
    for [found], x in zip(ringed.value, cases[0], strict=True):
        assert_tensor(found["sum"], dtype=x.dtype, shape=x.shape)


@gate
@claimed
def test_no_collective(ringed):
    """Calls no collective: nothing but sends and receives."""
    for rank, [got] in enumerate(ringed.value):
        assert_equal(got["others"], [], f"What rank {rank} called besides send and recv.")


def test_sum(ringed, cases):
    """Twelve numbers on four ranks; `x` stays as it is."""
    compare(ringed.value, 0, cases[0])
    for rank, got in enumerate(column(ringed.value, 0)):
        assert_holds(got["untouched"], f"The `x` of rank {rank} was changed.")


def test_sizes(ringed, rng):
    """Sizes that are no multiple of four, or less than four; nothing at all; whole numbers."""
    cases = [whole(rng, shape) for shape in AWKWARD]
    cases.append([torch.randint(-(2**40), 2**40, (9,), generator=rng) for _ in range(RANKS)])
    found = ringed.ask(cases).value
    for number, tensors in enumerate(cases):
        compare(found, number, tensors)


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


def test_same_bits(ringed, odd_cases):
    """Sums of `float32` have the same bits on all ranks."""
    [tensors] = odd_cases
    found = column(ringed.ask(odd_cases).value, 0)
    exact = sum(x.double() for x in tensors)
    for rank, got in enumerate(found):
        with about(*called(tensors[rank], rank), of="The sum. "):
            mine = got["sum"].double()
            because = "three roundings of float32"
            assert_close(mine, exact, rtol=1e-6, atol=1e-5, because=because)
        with about(*called(tensors[rank], rank), of="The sum, beside that of rank 0. "):
            assert_same_bits(got["sum"], found[0]["sum"])


@claimed
@points(4)
def test_messages(ringed, cases):
    """At most 2(n-1) messages of each rank, all of them to the next."""
    compare(ringed.value, 0, cases[0])  # who sends nothing has no cheap sum, but none
    most = 2 * (RANKS - 1)
    for rank, [got] in enumerate(ringed.value):
        with about(*called(cases[0][rank], rank)):
            others = sorted({to for to, _ in got["sent"]} - {(rank + 1) % RANKS})
            assert_equal(others, [], f"Ranks that rank {rank} sent to, besides the next.")
            rows = ("expected", f"{most} at most"), ("got", str(len(got["sent"])))
            what = f"The number of messages that rank {rank} sent."
            assert_holds(len(got["sent"]) <= most, what, *rows)


@claimed
def test_bytes(ringed, cases, odd_cases):
    """No message is longer than an n-th, rounded up."""
    compare(ringed.value, 0, cases[0])
    for [tensors], asked in ((cases, ringed), (odd_cases, ringed.ask(odd_cases))):
        longest = -(-tensors[0].numel() // RANKS) * tensors[0].itemsize
        for rank, [got] in enumerate(asked.value):
            with about(*called(tensors[rank], rank)):
                most = max((size for _, size in got["sent"]), default=0)
                rows = ("expected", f"{longest} bytes at most"), ("got", f"{most} bytes")
                assert_holds(most <= longest, f"The longest message of rank {rank}.", *rows)
