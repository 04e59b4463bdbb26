"""Modules whose parameters come and go: `Unit`."""

from itertools import pairwise

import torch
from torch import nn

from grader import on_ranks, pause, probe, watch_collectives, watch_memory

from .layers import group_of

SECONDS = 6.0
"""Longest life of ranks here: three units in two steps say forty things, in 0.5 s, and in 3 s at load 17."""


class Odd(nn.Module):
    """Two layers that share a weight, a parameter that nobody uses, and two results."""

    def __init__(self):
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(5))
        self.left, self.right = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)
        self.right.weight = self.left.weight
        self.scale = nn.Parameter(torch.zeros(()))

    def forward(self, x, *, shift):
        h = torch.tanh(self.left(x)) + shift
        return h * self.scale, self.right(h)


def modules_of(kind, seed):
    """Return the modules of a model, float64, whose numbers depend on the seed."""
    if kind == "chain":
        widths = (3, 5, 4, 2)
        pairs = pairwise(widths)
        modules = [nn.Sequential(nn.Linear(a, b), nn.Tanh()) for a, b in pairs]
    elif kind == "odd":
        modules = [nn.Linear(3, 4, bias=False), Odd()]
    else:  # "again": one module, called twice
        modules = [nn.Sequential(nn.Linear(3, 3), nn.Tanh())]
    generator = torch.Generator().manual_seed(seed)
    for module in modules:
        module.double()
        with torch.no_grad():
            for p in module.parameters():
                p.copy_(torch.randn(p.shape, generator=generator, dtype=torch.float64))
    return modules


def output_of(kind, modules, x):
    """Return the output of a model; `modules` are plain ones, or units of them."""
    if kind == "odd":
        first, second = modules
        return second(first(x), shift=0.25)[1]
    if kind == "again":
        [only] = modules
        return only(x) * only(only(x) + x)
    for module in modules:
        x = module(x)
    return x


@probe
def units_trained(student, kind, seed, batches, ranks, members):
    """Train a model of units with Adam; return by member outputs, gradients, shards and what was said.

    batches: by member and step, (rows, 3). Gradients of the first step are not cleared before the second.
    """

    def body(rank):
        inside, group = group_of(rank, ranks, members)
        if not inside:
            return None
        units = [student.Unit(module, *group) for module in modules_of(kind, seed)]
        found = {
            "parameters": [[name for name, _ in unit.named_parameters()] for unit in units],
            "first": [unit.shard.detach().clone() for unit in units],
            "storage": [unit.shard.untyped_storage().nbytes() for unit in units],
            "steps": [],
        }
        mine = batches[members.index(rank)]
        with torch.no_grad(), watch_collectives() as quiet:
            found["without grad"] = output_of(kind, units, mine[0])
        found["said without grad"] = list(quiet.events)
        optimizer = torch.optim.Adam([unit.shard for unit in units], lr=0.1)
        for x in mine:
            with watch_collectives() as forward:
                out = output_of(kind, units, x)
            with watch_collectives() as backward:
                out.square().mean().backward()
            grads = [None if unit.shard.grad is None else unit.shard.grad.clone() for unit in units]
            optimizer.step()
            found["steps"].append(
                {
                    "out": out.detach(),
                    "grads": grads,
                    "shards": [unit.shard.detach().clone() for unit in units],
                    "forward": list(forward.events),
                    "backward": list(backward.events),
                }
            )
        return found

    found = on_ranks(ranks, body, seconds=SECONDS)
    return [found[member] for member in members]


@probe
def units_alive(student, width, count, ranks, limits):
    """Return by rank bytes: alive when units are made; most in forward, alive after it; the same of
    backward, the gradients aside; and alive after a forward without gradients.

    limits: the most that each may be. What is within its limit is told as the limit, and what is not in
    halves of a unit: gloo's threads let go of a tensor when they come to it, at another moment each time.
    """

    def body(rank):
        # one watch for all: a storage that is empty when it is first seen, and filled later, counts as old
        with watch_memory(meta=False) as memory:

            def settled(base):
                # a moment after the call that the tensor was given to
                for _ in range(10):
                    if memory.live_bytes - base > width * width * 2:
                        pause(0.01)

            def since(base):
                settled(base)
                most = memory.peak_bytes
                memory.reset_peak()
                return most - base, memory.live_bytes - base

            made = [nn.Linear(width, width, bias=False) for _ in range(count)]
            units = [student.Unit(module) for module in made]
            del made
            base = memory.live_bytes
            found = {"made": base}
            memory.reset_peak()
            x = torch.ones(1, width)
            for unit in units:
                x = unit(x)
                settled(base)
            total = x.sum()
            found["forward"], found["between"] = since(base)
            total.backward()
            del total, x
            grads = sum(unit.shard.grad.nbytes for unit in units)
            found["backward"], found["after"] = since(base + grads)
            with torch.no_grad():
                x = torch.ones(1, width)
                for unit in units:
                    x = unit(x)
            _, found["quiet"] = since(base + grads)
        half = width * width * 2
        return {
            name: most if found[name] <= most else -(-found[name] // half) * half
            for name, most in limits.items()
        }

    return on_ranks(ranks, body, seconds=SECONDS)
