"""Parameters that some ranks do not use: `fill_unused`."""

import torch
from torch import nn

from grader import on_ranks, probe, watch_collectives

from .waiting import SECONDS


def used_in(parameters, uses, kind):
    """Return a loss that depends on the parameters numbered in `uses`."""
    h = torch.ones(2, dtype=torch.float64)
    for at in uses:
        h = h * parameters[at].double().sum()
    if kind == "deep":
        for _ in range(3000):
            h = h + 1
    if kind == "wide":
        for _ in range(60):
            h = (h + h) / 2
    if kind == "detached":
        h = h + sum(p.detach().double().sum() for p in parameters)
    return h.sum()


@probe
def filled(student, values, cases):
    """Return, by rank and case, what `fill_unused` said, all `.grad`s after it, and what was sent.

    A case has, for each rank, what its loss uses, and of which kind it is; then the parameters that
    have a gradient from before, those that are frozen, and those that are listed.
    """

    def run(rank, uses, kinds, stale, frozen, listed):
        parameters = [nn.Parameter(value) for value in values]
        if kinds[rank] == "one memory":
            parameters[3] = nn.Parameter(parameters[1].detach())
        for at in frozen:
            parameters[at].requires_grad_(False)
        for at in stale:
            parameters[at].grad = torch.full_like(values[at], 7.0)
        loss = used_in(parameters, uses[rank], kinds[rank])
        with watch_collectives() as seen:
            used = student.fill_unused(loss, [parameters[at] for at in listed])
        return {
            "used": used,
            "grads": [None if p.grad is None else p.grad.clone() for p in parameters],
            "flags": [p.grad is not None and p.grad.requires_grad for p in parameters],
            "events": list(seen.events),
        }

    def body(rank):
        return [run(rank, *case) for case in cases]

    return on_ranks(2, body, seconds=SECONDS)
