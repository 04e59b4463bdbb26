"""Gradients that lie over a mesh in shards, copies and partial sums: `clip`."""

import math

import torch
import torch.distributed as dist

from grader import on_ranks, probe, watch_collectives

from .waiting import SECONDS


def mesh_groups(shape):
    """Return this rank's process group along each dimension of a mesh; every rank makes them all."""
    numbers = torch.arange(math.prod(shape)).view(shape)
    mine = []
    for dimension, size in enumerate(shape):
        for ranks in numbers.movedim(dimension, -1).reshape(-1, size).tolist():
            group = dist.new_group(ranks)
            if dist.get_rank() in ranks:
                mine.append(group)
    return mine


@probe
def clipped(student, shape, cases):
    """Return, by rank and case, the norm, all gradients afterwards, and what was said.

    A case has for each rank the gradients, then their placements and the limit.
    """

    def body(rank):
        groups = mesh_groups(shape)
        found = []
        for shards, placements, limit in cases:
            grads = [grad.clone() for grad in shards[rank]]
            with watch_collectives() as seen:
                norm = student.clip(grads, [tuple(where) for where in placements], groups, limit)
            found.append({"norm": norm, "grads": grads, "said": list(seen.events)})
        return found

    return on_ranks(math.prod(shape), body, seconds=SECONDS)
