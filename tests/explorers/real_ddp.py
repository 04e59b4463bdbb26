"""Real ranks over gloo, whose buckets, messages and bytes the models of the ddp explorer must match."""

# No `from __future__ import annotations`: DDP reads those of a communication hook, and wants classes.

from collections.abc import Callable
from typing import Any

import torch
import torch._dynamo  # here and not in every fork: DistributedDataParallel asks for it
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from grader.inside.instruments.collectives import watch_collectives
from grader.inside.instruments.ranks import on_ranks
from tests.explorers.golden_ddp import nbytes, start, state_bytes

SECONDS = 30
Shapes = list[list[list[int]]]


# ── Buckets ──────────────────────────────────────────────────────────────────


class Chain(nn.Module):
    """Layers of any parameters, used in the order in which they are registered, or in the other."""

    def __init__(self, shapes: Shapes, *, crossed: bool = False) -> None:
        super().__init__()
        self.step = -1 if crossed else 1
        self.layers = nn.ModuleList(
            nn.ParameterList(nn.Parameter(torch.zeros(shape)) for shape in layer)
            for layer in shapes
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in list(self.layers)[:: self.step]:
            for parameter in layer:
                x = x + parameter.sum()
        return x


def linears(shapes: Shapes) -> nn.Module:
    """What most models are made of: `nn.Linear`, whose shapes these must be, with ReLU between."""
    layers: list[nn.Module] = []
    for (out, into), *_ in shapes:
        layers += [nn.Linear(into, out), nn.ReLU()]
    return nn.Sequential(*layers)


def _names(module: nn.Module, shapes: Shapes) -> dict[int, tuple[int, int]]:
    """Layer and place in it, from 0, by the identity of the parameter."""
    places = [(layer, place) for layer, params in enumerate(shapes) for place in range(len(params))]
    return {id(p): where for p, where in zip(module.parameters(), places, strict=True)}


def backwards(
    cases: list[tuple[str, Shapes, dict[str, Any]]], *, count: int = 3
) -> list[list[list[Any]]]:
    """Per case ("linears", "chain" or "crossed") and backward: ("g", parameter) and ("B", number, parameters, bytes) as they came."""

    def body(rank: int) -> list[list[list[Any]]]:
        return [_backwards(*case, count) for case in cases]

    first, second = on_ranks(2, body, seconds=SECONDS)
    assert first == second, "the ranks agree"
    return first


Hook = Callable[[None, dist.GradBucket], torch.futures.Future[torch.Tensor]]


def _hook(note: Callable[[dist.GradBucket], object]) -> Hook:
    """A communication hook that sends nothing."""

    def hook(_: None, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        note(bucket)
        done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    return hook


def _backwards(kind: str, shapes: Shapes, options: dict[str, Any], count: int) -> list[list[Any]]:
    torch.manual_seed(0)
    module = linears(shapes) if kind == "linears" else Chain(shapes, crossed=kind == "crossed")
    names = _names(module, shapes)
    events: list[Any] = []
    for parameter in module.parameters():
        where = list(names[id(parameter)])
        parameter.register_hook(lambda _, where=where: events.append(["g", where]))
    ddp = DistributedDataParallel(module, **options)

    def note(bucket: dist.GradBucket) -> None:
        members = [list(names[id(parameter)]) for parameter in bucket.parameters()]
        events.append(["B", bucket.index(), members, nbytes(bucket.buffer())])

    ddp.register_comm_hook(None, _hook(note))
    found = []
    for _ in range(count):
        events.clear()
        ddp(torch.ones(2, shapes[0][0][-1])).sum().backward()
        found.append(list(events))
    return found


def own_gradients(*, view: bool) -> int:
    """Bytes of gradients whose storage is not that of a bucket."""

    def body(rank: int) -> int:
        module = linears([[[4, 8], [4]]])
        buckets: list[torch.Tensor] = []
        ddp = DistributedDataParallel(module, gradient_as_bucket_view=view)
        ddp.register_comm_hook(None, _hook(lambda bucket: buckets.append(bucket.buffer())))
        for _ in range(2):
            ddp(torch.ones(1, 8)).sum().backward()
        storages = {bucket.untyped_storage().data_ptr() for bucket in buckets}
        grads = [parameter.grad for parameter in module.parameters()]
        return sum(
            nbytes(grad)
            for grad in grads
            if grad is not None and grad.untyped_storage().data_ptr() not in storages
        )

    return int(on_ranks(2, body, seconds=SECONDS)[0])


# ── Ring ─────────────────────────────────────────────────────────────────────


def rings(ranks: int, sizes: list[int]) -> list[Any]:
    """Per rank and size: what it holds after each step, and the bytes that it has sent by then."""

    def body(rank: int) -> list[Any]:
        return [_ring(rank, ranks, start(ranks, size)[rank]) for size in sizes]

    return on_ranks(ranks, body, seconds=SECONDS)


def _ring(rank: int, ranks: int, mine: torch.Tensor) -> list[Any]:
    pieces = [piece.clone() for piece in mine.int().tensor_split(ranks)]
    states, sent = [[piece.tolist() for piece in pieces]], [0]
    with watch_collectives() as said:
        for step in range(2 * (ranks - 1)):
            going, coming = (rank - step) % ranks, (rank - step - 1) % ranks
            arriving = torch.empty_like(pieces[coming])
            requests = [
                dist.isend(pieces[going], (rank + 1) % ranks),
                dist.irecv(arriving, (rank - 1) % ranks),
            ]
            for request in requests:
                if request is not None:
                    request.wait()
            adds = step < ranks - 1
            pieces[coming] = pieces[coming] + arriving if adds else arriving
            states.append([piece.tolist() for piece in pieces])
            sent.append(said.bytes("send"))
    return [states, sent]


def through_rank_0(ranks: int, size: int) -> list[Any]:
    """Per rank: the sum, by way of rank 0, and the bytes that this rank has sent for it."""

    def body(rank: int) -> list[Any]:
        x = start(ranks, size)[rank].int()
        with watch_collectives() as said:
            if rank:
                dist.send(x, 0)
                dist.recv(x, 0)
            else:
                for other in range(1, ranks):
                    arriving = torch.empty_like(x)
                    dist.recv(arriving, other)
                    x += arriving
                for other in range(1, ranks):
                    dist.send(x, other)
        return [x.tolist(), said.bytes("send")]

    return on_ranks(ranks, body, seconds=SECONDS)


# ── ZeRO ─────────────────────────────────────────────────────────────────────

WIDTH, DEPTH = 32, 4
PARAMS = DEPTH * WIDTH**2


def _square() -> nn.Sequential:
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(DEPTH)))


def _measured(make: Callable[[], tuple[nn.Module, torch.optim.Optimizer]]) -> dict[str, Any]:
    """Bytes on this rank after two steps, and what it called in the second."""
    model, optimizer = make()
    for _ in range(2):
        optimizer.zero_grad()
        with watch_collectives() as said:
            model(torch.ones(1, WIDTH)).sum().backward()
            grads = nbytes(*(_local(p.grad) for p in model.parameters() if p.grad is not None))
            optimizer.step()
    inner = getattr(optimizer, "optim", optimizer)
    return {
        "weights": nbytes(*(_local(parameter) for parameter in model.parameters())),
        "gradients": grads,
        "state": state_bytes(inner) if not _sharded(inner) else _sharded(inner),
        "steps": sum(nbytes(state["step"]) for state in inner.state.values()),
        "tensors": len(inner.state),
        "calls": [list(event) for event in said.events],
    }


def _local(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _sharded(optimizer: torch.optim.Optimizer) -> int:
    """Bytes of the local shards of its state, 0 if that is not sharded by DTensor."""
    values = [
        value
        for state in optimizer.state.values()
        for value in state.values()
        if isinstance(value, DTensor)
    ]
    return nbytes(*(value.to_local() for value in values))


def replicas(ranks: int) -> list[dict[str, Any]]:
    """DDP with Adam."""

    def make() -> tuple[nn.Module, torch.optim.Optimizer]:
        ddp = DistributedDataParallel(_square())
        return ddp, torch.optim.Adam(ddp.parameters())

    return on_ranks(ranks, lambda rank: _measured(make), seconds=SECONDS)


def zero_1(ranks: int) -> list[dict[str, Any]]:
    """DDP with torch's ZeroRedundancyOptimizer."""

    def make() -> tuple[nn.Module, torch.optim.Optimizer]:
        ddp = DistributedDataParallel(_square())
        return ddp, ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.Adam, lr=0.1)

    return on_ranks(ranks, lambda rank: _measured(make), seconds=SECONDS)


def zero_3(ranks: int, *, mixed: bool = False, reshard: bool = True) -> list[dict[str, Any]]:
    """FSDP2 with Adam; and whether weights were whole between forward and backward, and after."""

    def body(rank: int) -> dict[str, Any]:
        mesh = init_device_mesh("cpu", (ranks,))
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16 if mixed else None)
        model = _square()
        for module in (*model, model):
            fully_shard(module, mesh=mesh, reshard_after_forward=reshard, mp_policy=policy)
        found = _measured(lambda: (model, torch.optim.Adam(model.parameters())))
        loss = model(torch.ones(1, WIDTH)).sum()
        between = not isinstance(model[0].weight, DTensor)
        loss.backward()
        return {**found, "whole": [between, not isinstance(model[0].weight, DTensor)]}

    return on_ranks(ranks, body, seconds=SECONDS)
