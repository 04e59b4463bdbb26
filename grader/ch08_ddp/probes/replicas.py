"""Replicas that begin alike and are averaged: `sync_module` and `average_gradients`."""

import torch
from torch import nn

from grader import on_ranks, probe, watch_collectives

from .waiting import SECONDS


class Replica(nn.Module):
    """A model whose tensors are of many kinds; their values depend on the rank, their layouts too.

    `odd` names what is different on this rank: "name", "spelling of a name", "shape",
    "dtype", "order" or nothing.
    """

    def __init__(self, base, rank, odd=""):
        super().__init__()

        def numbers(*shape, dtype=torch.float32):
            count = torch.Size(shape).numel()
            return (base + 100 * rank + torch.arange(count)).reshape(shape).to(dtype)

        self.register_buffer("steps", numbers(dtype=torch.int64))
        by_columns = numbers(4, 3).t()  # the same shape on all ranks, another layout on rank 1
        weight = by_columns if rank == 1 else by_columns.contiguous()
        self.weight = nn.Parameter(numbers(4, 3) if odd == "shape" else weight)
        self.frozen = nn.Parameter(numbers(5, dtype=torch.float64), requires_grad=False)
        self.scale = nn.Parameter(numbers(dtype=torch.bfloat16))
        self.empty = nn.Parameter(numbers(0, 3))
        self.inner = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        with torch.no_grad():
            for tensor in (*self.inner.parameters(), *self.inner.buffers()):
                tensor.copy_(numbers(*tensor.shape))
        self.table = nn.Embedding(64, 128, _weight=numbers(64, 128))
        self.head = nn.Linear(128, 64, bias=False)
        self.head.weight = self.table.weight
        right = "rite" if odd == "spelling of a name" else "right"
        twins = {"left": numbers(2), right: numbers(2) + 10}
        for name in reversed(twins) if odd == "order" else twins:
            self.register_buffer(name, twins[name])
        self.register_buffer("mask", (numbers(6) % (2 + rank)) > 0, persistent=False)
        spread = numbers(4, 1).repeat(1, 3)[:, 1] if rank != 2 else numbers(4)
        self.register_buffer("column", spread.half() if odd == "dtype" else spread)
        if odd == "name":
            self.register_buffer("extra", numbers(2))


def tensors_of(module):
    """Return a module's parameters and buffers by name, each once."""
    return dict([*module.named_parameters(), *module.named_buffers()])


@probe
def synced(student, base, world_size, source):
    """Return, by rank, a replica's tensors after `sync_module`, and what became of the objects."""

    def body(rank):
        module = Replica(base, rank)
        before = tensors_of(module)
        kept = {name: (t.stride(), t.requires_grad) for name, t in before.items()}
        with watch_collectives() as seen:
            result = student.sync_module(module, source) if source else student.sync_module(module)
        after = tensors_of(module)
        return {
            "returned": result is not None,
            "values": {name: t.detach().clone() for name, t in after.items()},
            "same objects": [name for name in before if after.get(name) is not before[name]],
            "other layouts": [
                name for name, t in after.items() if kept.get(name) != (t.stride(), t.requires_grad)
            ],
            "tied": module.head.weight is module.table.weight,
            "recorded": [name for name, t in after.items() if not t.is_leaf],
            "bytes": sum(size for name, size in seen.events if name != "recv"),
        }

    return on_ranks(world_size, body, seconds=SECONDS)


@probe
def sync_refused(student, base, odd, odd_rank):
    """Return, by rank, what came of replicas of which one is odd, and the source is rank 1.

    What was raised; the names of what has changed, and of what is not as on the source.
    """

    def body(rank):
        module = Replica(base, rank, odd if rank == odd_rank else "")
        before = {name: t.detach().clone() for name, t in tensors_of(module).items()}
        try:
            student.sync_module(module, 1)
            raised = "nothing"
        except Exception as error:
            raised = type(error).__name__
        after, there = tensors_of(module), tensors_of(Replica(base, 1))
        return {
            "raised": raised,
            "changed": [n for n in before if not same(before[n], after[n])],
            "other": [n for n in before if n not in there or not same(there[n], after[n])],
        }

    return on_ranks(3, body, seconds=SECONDS)


def same(left, right):
    """Say whether two tensors have the same shape, dtype and values."""
    return left.dtype == right.dtype and left.shape == right.shape and bool((left == right).all())


@probe
def averaged(student, values, cases):
    """Return, by rank and case, all gradients after `average_gradients`, and what else happened.

    A case is a triple: gradients, a list for each rank, with a tensor or None for each parameter;
    samples of each rank; positions of frozen parameters.
    """

    def run(rank, grads, samples, frozen):
        parameters = [nn.Parameter(value.clone()) for value in values]
        for number, (parameter, grad) in enumerate(zip(parameters, grads[rank], strict=True)):
            parameter.grad = grad
            parameter.requires_grad_(number not in frozen)
        with watch_collectives() as seen:
            student.average_gradients(iter(parameters), samples[rank])
        return {
            "grads": [p.grad.detach().clone() if p.grad is not None else None for p in parameters],
            "recorded": any(p.grad is not None and p.grad.requires_grad for p in parameters),
            "values": all(same(p.detach(), v) for p, v in zip(parameters, values, strict=True)),
            "bytes": sum(size for _, size in seen.events),
        }

    # Ranks of their own for each case: a rank that leaves one out would else meet the others in the
    # wrong all-reduce of the next, and the transport's words for that help nobody.
    found = [
        on_ranks(len(case[1]), lambda rank, case=case: run(rank, *case), seconds=SECONDS)
        for case in cases
    ]
    return [list(of_rank) for of_rank in zip(*found, strict=True)]
