"""Communication is seen in order, whoever issues it, and told by its public name."""

import torch
import torch._dynamo  # DDP would import it in every rank, which takes seconds
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from grader.inside.instruments.collectives import watch_collectives
from grader.inside.instruments.ranks import on_ranks


def test_names_and_bytes_in_order():
    def body(rank):
        x, parts = torch.ones(3), [torch.ones(3), torch.ones(3)]
        with watch_collectives() as seen:
            dist.all_reduce(x)
            dist.broadcast(x.double(), 0)
            seen.note("between")
            dist.all_gather(parts, x)
            dist.all_gather_into_tensor(torch.empty(6), x)
            dist.reduce_scatter(x, parts)
            dist.scatter(x, parts if rank == 0 else None)
            dist.barrier()
            if rank == 0:
                dist.isend(x, 1).wait()
            else:
                dist.irecv(x).wait()
        dist.all_reduce(x)
        return seen.events

    first, second = on_ranks(2, body)
    assert first == (
        ("all_reduce", 12),
        ("broadcast", 24),
        ("between", 0),
        ("all_gather", 12),
        ("all_gather_into_tensor", 12),
        ("reduce_scatter", 24),
        ("scatter", 12),
        ("barrier", 0),
        ("send", 12),
    )
    assert second == (*first[:-1], ("recv", 12))


def test_counts_and_sums():
    def body(rank):
        with watch_collectives() as seen:
            for size in (1, 2, 3):
                dist.all_reduce(torch.ones(size), async_op=True).wait()
            dist.barrier()
        return seen.count("all_reduce"), seen.bytes("all_reduce"), seen.names[-1]

    assert on_ranks(2, body) == [(3, 24, "barrier")] * 2


def test_the_reducer_of_ddp_is_seen():
    def body(rank):
        model = DistributedDataParallel(nn.Linear(3, 2))
        with watch_collectives() as seen:
            model(torch.ones(1, 3)).sum().backward()
        return seen.events

    assert on_ranks(2, body) == [(("all_reduce", 32),)] * 2
