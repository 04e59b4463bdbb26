"""Chapter 10's reference solutions agree with PyTorch's own sharding, between real ranks."""

import warnings
from functools import partial

import pytest
import torch
import torch._dynamo  # FSDP imports it: once here, not in every fork
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import loss_parallel

from grader.ch10_sharding.shards import bounds
from grader.inside.instruments.ranks import on_ranks
from tests import references

reference = partial(references.reference, "ch10_sharding")


@pytest.mark.parametrize("ranks", [2, 4])
def test_rows_are_those_of_dtensor(ranks):
    cut, lengths = reference("cut"), range(10)

    def body(rank):
        mesh = init_device_mesh("cpu", (ranks,))
        return [
            distribute_tensor(torch.arange(n), mesh, [Shard(0)]).to_local().tolist()
            for n in lengths
        ]

    found = on_ranks(ranks, body)
    for n in lengths:
        for rank, (offset, size) in enumerate(cut(n, ranks)):
            assert found[rank][n] == list(range(offset, offset + size))
        assert cut(n, ranks) == bounds(n, ranks)


PLACED = {"replicate": Replicate(), "partial": Partial()}
WAYS = [
    ("replicate", ("shard", 1)),
    (("shard", 0), "replicate"),
    (("shard", 1), "replicate"),
    (("shard", 0), ("shard", 1)),
    ("partial", "replicate"),
    ("partial", ("shard", 1)),
]


def placed(layout):
    return PLACED[layout] if isinstance(layout, str) else Shard(layout[1])


def test_ways_are_those_of_dtensor():
    redistribute, shape = reference("redistribute"), (5, 7)

    def body(rank):
        mesh = init_device_mesh("cpu", (3,))
        whole = torch.arange(35.0).view(shape)
        same = []
        for source, target in WAYS:
            if source == "partial":
                local = whole * (rank + 1)
            else:
                local = distribute_tensor(whole, mesh, [placed(source)]).to_local()
            x = DTensor.from_local(
                local, mesh, [placed(source)], run_check=False, shape=shape, stride=(7, 1)
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it gathers from dim to dim
                theirs = x.redistribute(mesh, [placed(target)]).to_local()
            same.append(torch.equal(redistribute(local, shape, source, target), theirs))
        return same

    assert on_ranks(3, body) == [[True] * len(WAYS)] * 3


def test_the_loss_is_that_of_loss_parallel():
    vocab_loss = reference("vocab_loss")
    torch.manual_seed(0)
    hidden, table, targets = torch.randn(5, 3), torch.randn(8, 3), torch.tensor([0, 7, 3, 4, 2])

    def body(rank):
        mesh = init_device_mesh("cpu", (4,))
        logits = distribute_tensor(hidden @ table.T, mesh, [Shard(1)])
        with loss_parallel():
            theirs = nn.functional.cross_entropy(
                logits, distribute_tensor(targets, mesh, [Replicate()])
            )
        mine = table[2 * rank : 2 * rank + 2]
        return vocab_loss(hidden, mine, 8, targets).item(), theirs.to_local().item()

    for ours, theirs in on_ranks(4, body):
        assert ours == pytest.approx(theirs, rel=1e-6)


def test_gradients_are_those_of_fsdp():
    unit_of = reference("Unit")

    def body(rank):
        torch.manual_seed(0)
        model, same = nn.Linear(3, 4), nn.Linear(3, 4)
        same.load_state_dict(model.state_dict())
        fully_shard(same, mesh=init_device_mesh("cpu", (2,)))
        unit, x = unit_of(model), torch.randn(2, 3) + rank
        unit(x).square().mean().backward()
        same(x).square().mean().backward()
        full = [p.grad.full_tensor().flatten() for p in same.parameters()]
        return torch.allclose(unit.shard.grad, torch.cat(full).chunk(2)[rank], atol=1e-6)

    assert on_ranks(2, body) == [True, True]
