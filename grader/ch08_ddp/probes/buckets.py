"""Gradients that are sent while others are being computed: `Buckets`."""

import os

import torch
from torch import nn

from grader import on_ranks, probe, wait_for, watch_collectives

from .waiting import PATIENCE, SECONDS


def chained(parameters, uses, x):
    """Return one number computed from `x` (3, 3) by using parameters one after the other."""
    h = x
    for at in uses:
        p = parameters[at].double()
        h = torch.tanh(h @ p if p.dim() == 2 else h * p if p.dim() == 0 else h + p)
    return (h * h).sum()


def in_turn(x, turn):
    """Return the input of an iteration."""
    return x * (1 + turn)


@probe
def planned(student, values, capacities, frozen):
    """Return the plan for each capacity."""
    parameters = [
        nn.Parameter(value.clone(), requires_grad=number not in frozen)
        for number, value in enumerate(values)
    ]
    return [student.Buckets(iter(parameters), capacity).plan for capacity in capacities]


@probe
def bucketed(student, values, uses, xs, capacity, turns, frozen):
    """Return, by rank and iteration, the averaged gradients and the order of events.

    `uses` has, for each rank, the positions of the parameters in the order in which it uses them.
    """

    def body(rank):
        # on every other rank by columns; a gradient lies in memory as its parameter does
        layout = torch.Tensor.t if rank % 2 else torch.Tensor.contiguous
        parameters = [
            nn.Parameter(layout(layout(value).contiguous()) if value.dim() == 2 else value)
            for value in values
        ]
        for position in frozen:
            parameters[position].requires_grad_(False)
        found, logs = [], []
        for number, parameter in enumerate(parameters):
            if number not in frozen:
                parameter.register_post_accumulate_grad_hook(
                    lambda _, number=number: logs[-1].note(f"gradient {number}")
                )
        buckets = student.Buckets(iter(parameters), capacity)
        for turn in range(turns):
            for parameter in parameters:
                parameter.grad = None
            with watch_collectives() as seen:
                logs.append(seen)
                chained(parameters, uses[rank], in_turn(xs[rank], turn)).backward()
                seen.note("finish")
                buckets.finish()
            found.append(
                {
                    "grads": [None if p.grad is None else p.grad.clone() for p in parameters],
                    "events": list(seen.events),
                }
            )
        return found

    return on_ranks(len(xs), body, seconds=SECONDS)


@probe
def overlapped(student, values, xs, capacity):
    """Return whether rank 0's backward was through before rank 1 began its own; and gradients.

    Rank 1 waits for rank 0's word, but no longer than `PATIENCE`.
    """
    ear, mouth = os.pipe()
    uses = list(range(len(values)))

    def body(rank):
        parameters = [nn.Parameter(value) for value in values]
        buckets = student.Buckets(parameters, capacity)
        total = chained(parameters, uses, xs[rank])
        heard = rank == 0 or wait_for(ear, PATIENCE)
        total.backward()
        if rank == 0:
            os.write(mouth, b"!")
        buckets.finish()
        return {"heard": heard, "grads": [p.grad.clone() for p in parameters]}

    try:
        return on_ranks(2, body, seconds=PATIENCE + SECONDS)
    finally:
        os.close(ear)
        os.close(mouth)


@probe
def bucket_missing(student, values, x, capacity):
    """Return, by rank, what `finish` raised after a backward that left out a parameter."""

    def body(rank):
        parameters = [nn.Parameter(value) for value in values]
        buckets = student.Buckets(parameters, capacity)
        uses = list(range(len(values)))
        chained(parameters, uses, x).backward()
        buckets.finish()
        for parameter in parameters:
            parameter.grad = None
        chained(parameters, [at for at in uses if at != 1], x).backward()
        try:
            buckets.finish()
        except Exception as error:
            return type(error).__name__
        return "nothing"

    return on_ranks(2, body, seconds=SECONDS)
