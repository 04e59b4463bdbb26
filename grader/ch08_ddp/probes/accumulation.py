"""Micro-batches, and one message for all of them: `accumulate`."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from grader import on_ranks, probe, watch_collectives

from .waiting import SECONDS


def small_model(weights):
    """Return a float64 model of three weights (4, 3), (4,) and (1, 4), and one that is frozen."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), weights, strict=False):
            parameter.copy_(value)
        model[2].bias.fill_(0.5)
    model[2].bias.requires_grad_(False)
    return model


def loss_of_output(output):
    """Return the mean loss over samples. `output` (samples, 1)."""
    return (output.exp() + output.square()).mean()


@probe
def accumulated(student, weights, micro_batches, turns):
    """Return, by rank and turn, gradients, the loss returned, and the order of events.

    `micro_batches` has a list of tensors for each rank.
    """

    def body(rank):
        model = small_model(weights)
        ddp = DistributedDataParallel(model)
        found = []
        for _ in range(turns):
            ddp.zero_grad()
            with watch_collectives() as seen:

                def drawn(seen=seen):
                    for number, x in enumerate(micro_batches[rank]):
                        seen.note(f"take {number}")
                        yield x

                def loss_of(output, seen=seen):
                    seen.note(f"loss of {len(output)}")
                    output.register_hook(lambda grad: seen.note("backward"))
                    return loss_of_output(output)

                loss = student.accumulate(ddp, drawn(), loss_of)
            found.append(
                {
                    "loss": loss,
                    "grads": [None if p.grad is None else p.grad.clone() for p in ddp.parameters()],
                    "events": list(seen.events),
                }
            )
        return found

    return on_ranks(len(micro_batches), body, seconds=SECONDS)
