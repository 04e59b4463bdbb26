"""Ranks end in every way that code of ranks can end, and none is left behind."""

import os
import time

import psutil
import pytest
import torch
import torch.distributed as dist

from grader.evidence.wire.raised import Relayed
from grader.inside.instruments.ranks import RankDied, RanksHung, on_ranks
from tests import begun_since

LONG = 300.0
"""Seconds after which ranks would be given up that are seen to hang, or to have raised, long before."""


@pytest.fixture(autouse=True)
def nobody_is_left():
    before = set(psutil.Process().children())
    yield
    assert not begun_since(before)


def test_results_by_rank():
    def body(rank):
        x = torch.full((2,), float(rank))
        dist.all_reduce(x)
        return rank, x, os.getpid()

    results = on_ranks(3, body)
    assert [rank for rank, _, _ in results] == [0, 1, 2]
    assert all(x.tolist() == [3.0, 3.0] for _, x, _ in results)
    assert len({pid for _, _, pid in results} | {os.getpid()}) == 4


def test_work_before_the_fork_does_no_harm():
    a = torch.ones(400, 400)
    a @ a  # starts OpenMP's threads, which a fork does not have
    assert on_ranks(2, lambda rank: float((a @ a).sum())) == [400.0**3] * 2


def test_a_rank_that_waits_is_killed():
    def body(rank):
        if rank == 0:
            dist.barrier()

    start = time.monotonic()
    with pytest.raises(
        RanksHung,
        match="The ranks wait for each other: rank 0 waited at barrier #1, rank 1 had left without a call",
    ):
        on_ranks(2, body, seconds=LONG)
    assert time.monotonic() - start < LONG / 2


def test_what_one_rank_raises_is_told_at_once():
    def body(rank):
        if rank == 1:
            raise LookupError("no such bucket")
        dist.barrier()

    start = time.monotonic()
    with pytest.raises(Relayed, match=r"no such bucket \(on rank 1\)") as caught:
        on_ranks(2, body, seconds=LONG)
    assert time.monotonic() - start < LONG / 2
    assert caught.value.report["type"] == "LookupError"
    assert "Exception" in caught.value.report["mro"]


def test_the_lowest_rank_that_raised_is_named():
    def body(rank):
        time.sleep(0.2 * (1 - rank))
        raise ValueError

    with pytest.raises(Relayed, match=r"\(on rank 0\)"):
        on_ranks(2, body)


@pytest.mark.parametrize("leave", [os._exit, lambda code: os.kill(os.getpid(), 9)])
def test_a_rank_that_dies(leave):
    with pytest.raises(RankDied, match="rank 1"):
        on_ranks(2, lambda rank: leave(3) if rank else None)


def test_what_is_heard_of_a_death_says_more_than_the_death():
    def body(rank):
        if rank:
            os._exit(3)
        dist.barrier()

    with pytest.raises(Relayed, match=r"\(on rank 0\)"):
        on_ranks(2, body)


def test_a_broken_connection_is_told_by_who_ended():
    """Not in the transport's words."""

    def body(rank):
        if rank == 0:
            dist.send(torch.ones(2), 1)
            dist.barrier()
        else:
            dist.recv(torch.zeros(2), 0)
            os._exit(3)

    with pytest.raises(Relayed) as caught:
        on_ranks(2, body)
    assert "The process of rank 1 ended in or after recv #1" in str(caught.value)
    assert "gloo/transport" not in str(caught.value)


def test_what_a_rank_raised_comes_before_what_it_did_to_others():
    def body(rank):
        if rank == 0:
            dist.barrier()
        try:
            os._exit(3) if rank == 1 else dist.recv(torch.zeros(2), 1)
        except RuntimeError:
            raise ValueError("of my own") from None

    with pytest.raises(Relayed, match=r"of my own \(on rank 2\)"):
        on_ranks(3, body)


def test_leaving_politely_is_an_exception_too():
    with pytest.raises(Relayed) as caught:
        on_ranks(2, lambda rank: exit(3) if rank else None)
    assert caught.value.report["type"] == "SystemExit"


def test_results_are_plain_data():
    with pytest.raises(Relayed, match=r"the result is a builtins\.function"):
        on_ranks(2, lambda rank: [lambda: rank])


def test_no_descriptors_are_left():
    before = len(os.listdir("/proc/self/fd"))
    on_ranks(2, lambda rank: rank)
    with pytest.raises(RanksHung):
        on_ranks(2, lambda rank: time.sleep(60), seconds=0.3)
    assert len(os.listdir("/proc/self/fd")) == before


def test_each_rank_is_named_with_its_last_call():
    def body(rank):
        x = torch.ones(1)
        dist.all_reduce(x)
        dist.all_reduce(x)
        if rank:
            dist.all_reduce(x)

    with pytest.raises(RanksHung) as caught:
        on_ranks(3, body)
    assert str(caught.value) == (
        "The ranks wait for each other: ranks 1 and 2 waited at all_reduce #3, "
        "rank 0 had left after all_reduce #2."
    )
