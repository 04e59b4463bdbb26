"""Communication is seen in order, whoever issues it, and told by its public name."""

import torch
import torch._dynamo  # DDP would import it in every rank, which takes seconds
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
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


def on_a_mesh(do):
    """Return what rank 0 of two says while it does `do(mesh)`."""

    def body(rank):
        with watch_collectives() as seen:
            do(init_device_mesh("cpu", (2,)))
        return seen.events

    return on_ranks(2, body)[0]


def test_what_a_dtensor_redistributes_is_seen():
    def do(mesh):
        torch.relu(DTensor.from_local(torch.ones(4, 4), mesh, [Partial()], run_check=False))
        rows = DTensor.from_local(torch.ones(2, 4), mesh, [Shard(0)], run_check=False)
        rows.redistribute(mesh, [Replicate()])

    assert on_a_mesh(do)[-2:] == (("all_reduce", 64), ("all_gather_into_tensor", 32))


def test_what_fsdp_says_is_seen():
    def do(mesh):
        layers = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
        for layer in layers:
            fully_shard(layer, mesh=mesh, reshard_after_forward=True)
        layers(torch.ones(1, 4)).sum().backward()

    gather, scatter = ("all_gather_into_tensor", 32), ("reduce_scatter_tensor", 64)
    said = [event for event in on_a_mesh(do) if event in (gather, scatter)]
    assert said.count(gather) == 4 and said.count(scatter) == 2


class Talkative(torch.Tensor):
    """A subclass whose every operator is an all-reduce."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        dist.all_reduce(args[0].inner)
        return args[0]


def test_what_a_subclass_says_is_seen():
    assert on_a_mesh(lambda mesh: Talkative(torch.ones(3)) * 2)[-1] == ("all_reduce", 12)
