"""Checks of `zero_ledger`: bytes per rank, stage by stage."""

import pytest
import torch

from grader import assert_equal, gate, points

KEPT = ("parameters", "gradients", "state")


@pytest.fixture
def sizes(rng):
    """Lists of sizes whose totals are no multiples of the numbers of ranks."""
    return [torch.randint(1, 10_000, (n,), generator=rng).tolist() for n in (1, 5, 9)]


def expected(sizes, ranks, stage):
    total = sum(sizes)
    padded = total + (-total) % ranks
    parts = {"parameters": (2, 3), "gradients": (2, 2), "state": (12, 1)}
    ledger = {
        name: each * (padded // ranks if stage >= first else total)
        for name, (each, first) in parts.items()
    }
    hops = {0: 2, 1: 2, 2: 2, 3: 3}[stage]
    return ledger | {"sent": hops * 2 * padded * (ranks - 1) // ranks}


def compare(ledgers, cases, names):
    got = ledgers.ask(cases).value
    for case, ledger in zip(cases, got, strict=True):
        right = expected(*case)
        for name in names:
            what = f'`zero_ledger({", ".join(map(repr, case))})["{name}"]`.'
            assert_equal(ledger[name], right[name], what)


@gate
def test_entries(ledgers, sizes):
    """A dict of four whole numbers."""
    for ledger in ledgers.ask([(sizes[0], 2, stage) for stage in range(4)]).value:
        assert_equal(type(ledger).__name__, "dict", "What a ledger is.")
        assert_equal(sorted(map(str, ledger)), sorted([*KEPT, "sent"]), "The keys.")
        assert_equal({type(n).__name__ for n in ledger.values()}, {"int"}, "The types.")


def test_stage_0(ledgers, sizes):
    """Stage 0 keeps everything, unpadded."""
    compare(ledgers, [(s, ranks, 0) for s in sizes for ranks in (2, 7)], KEPT)


def test_stage_1(ledgers, sizes):
    """Stage 1 shards the state, and nothing else."""
    compare(ledgers, [(s, ranks, 1) for s in sizes for ranks in (2, 7)], KEPT)


@points(2)
def test_stages_2_and_3(ledgers, sizes):
    """Stage 2 shards gradients too, stage 3 parameters too."""
    compare(ledgers, [(s, r, stage) for stage in (2, 3) for s in sizes for r in (2, 7)], KEPT)


def test_sent(ledgers, sizes):
    """What is sent: two passes over the parameters, three in stage 3."""
    cases = [(s, ranks, stage) for stage in range(4) for s in sizes for ranks in (2, 7)]
    compare(ledgers, cases, ["sent"])


def test_corners(ledgers):
    """One rank, more ranks than elements, no parameters."""
    corners = [([5, 3], 1), ([2, 1], 8), ([1], 64), ([], 4)]
    compare(ledgers, [(s, r, stage) for s, r in corners for stage in range(4)], [*KEPT, "sent"])
