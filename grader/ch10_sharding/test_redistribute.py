"""Checks of `redistribute`: what each rank has afterwards, and what was said on the way."""

import pytest
import torch

from grader import claimed, gate, points, whole_numbers
from grader.ch10_sharding.layouts import assert_apart, assert_laid_out, assert_said, laid_out

RANKS = 3
REPLICATE, PARTIAL = "replicate", "partial"
ROWS, COLUMNS = ("shard", 0), ("shard", 1)


def draw(rng, ways, shape, ranks=RANKS, dtype=torch.float64):
    """Return a case for each way, and the tensor of each."""
    cases, wholes = [], []
    for source, target in ways:
        x = whole_numbers(rng, shape, -99, 99, dtype=dtype)
        x[x == 0] = 7  # zero has a sign, which sums do not keep
        cases.append((laid_out(x, source, ranks, rng), shape, source, target))
        wholes.append(x)
    return cases, wholes


def compare(found, cases, wholes):
    for number, (case, x) in enumerate(zip(cases, wholes, strict=True)):
        assert_laid_out(found, number, case, x)


ALL = [
    (REPLICATE, ROWS),
    (REPLICATE, PARTIAL),
    (ROWS, REPLICATE),
    (PARTIAL, REPLICATE),
    (PARTIAL, ROWS),
    (ROWS, PARTIAL),
    (ROWS, COLUMNS),
    (REPLICATE, COLUMNS),
    (COLUMNS, REPLICATE),
    (PARTIAL, COLUMNS),
    (COLUMNS, PARTIAL),
    (COLUMNS, ROWS),
    (ROWS, ROWS),
    (COLUMNS, COLUMNS),
    (REPLICATE, REPLICATE),
    (PARTIAL, PARTIAL),
]


@pytest.fixture
def drawn(rng):
    """Every way, of a tensor that comes out even: (6, 3) on three ranks."""
    return draw(rng, ALL, (6, 3))


@pytest.fixture
def cases(drawn):
    return drawn[0]


@pytest.fixture
def ranks():
    return RANKS


@pytest.fixture
def members():
    return list(range(RANKS))


def only(drawn, sources, targets):
    """Return the numbers of the cases between these layouts, which are not the same."""
    return [
        number
        for number, (_, _, source, target) in enumerate(drawn[0])
        if source in sources and target in targets and source != target
    ]


def compare_some(found, drawn, sources, targets):
    for number in only(drawn, sources, targets):
        assert_laid_out(found, number, drawn[0][number], drawn[1][number])


SHARDS = (ROWS, COLUMNS)


@gate
def test_a_new_tensor(redistributed, drawn):
    """Returns a tensor of its own, and leaves `local` as it was."""
    for number, case in enumerate(drawn[0]):
        assert_apart(redistributed.value, number, case)


def test_from_replicate(redistributed, drawn):
    """From what all have: a part, or a term of a sum that is exact."""
    compare_some(redistributed.value, drawn, (REPLICATE,), (*SHARDS, PARTIAL))


def test_to_replicate(redistributed, drawn):
    """From parts and from terms to all of it."""
    compare_some(redistributed.value, drawn, (*SHARDS, PARTIAL), (REPLICATE,))


def test_partial_and_shard(redistributed, drawn):
    """From terms to a part of the sum, and back."""
    compare_some(redistributed.value, drawn, (PARTIAL,), SHARDS)
    compare_some(redistributed.value, drawn, SHARDS, (PARTIAL,))


def test_from_dim_to_dim(redistributed, drawn):
    """From parts along one dim to parts along the other."""
    compare_some(redistributed.value, drawn, SHARDS, SHARDS)


def test_uneven(redistributed, ranks, members, rng):
    """Dims that do not come out even, and ranks that have nothing."""
    for shape in ((4, 2), (1, 5, 7), (0, 4)):
        ways = [(ROWS, COLUMNS), (COLUMNS, ROWS), (ROWS, REPLICATE), (COLUMNS, REPLICATE)]
        ways += [(PARTIAL, ROWS), (PARTIAL, COLUMNS), (REPLICATE, COLUMNS), (ROWS, PARTIAL)]
        if len(shape) == 3:
            ways += [(("shard", 2), ROWS), (COLUMNS, ("shard", 2)), (("shard", 2), REPLICATE)]
            ways += [(PARTIAL, ("shard", 2))]
        cases, wholes = draw(rng, ways, shape, dtype=torch.int64)
        found = redistributed.ask(cases, ranks, members).value
        compare(found, cases, wholes)
        for number, case in enumerate(cases):
            assert_said(found, number, case, 8)


def test_layouts(redistributed, ranks, members, rng):
    """Tensors that lie in memory by columns, or with gaps; floats of any size become partial exactly."""
    ways = [way for way in ALL if way[0] != way[1]]
    cases, wholes = draw(rng, ways, (5, 4))
    for parts, *_ in cases:
        parts[0] = parts[0].t().contiguous().t()
        wide = parts[1].repeat_interleave(2, -1)
        parts[1] = wide[..., ::2]
    x = torch.randn(5, 4, generator=rng) * torch.logspace(-30, 30, 20).view(5, 4)
    cases.append((laid_out(x, REPLICATE, ranks, rng), (5, 4), REPLICATE, PARTIAL))
    wholes.append(x)
    found = redistributed.ask(cases, ranks, members).value
    compare(found, cases, wholes)
    for number, case in enumerate(cases):
        assert_apart(found, number, case)


def test_groups(redistributed, ranks, rng):
    """A group of ranks 1 and 2 alone, and a group of one rank."""
    for members in ([1, 2], [0]):
        cases, wholes = draw(rng, ALL, (3, 5), len(members), torch.int32)
        world = ranks if len(members) > 1 else 1
        compare(redistributed.ask(cases, world, members).value, cases, wholes)


@claimed
@points(2)
def test_messages(redistributed, drawn):
    """Each way by the one collective that it needs, or by none; nobody brings more than its part."""
    compare(redistributed.value, *drawn)
    for number, case in enumerate(drawn[0]):
        assert_said(redistributed.value, number, case, 8)
