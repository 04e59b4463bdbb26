"""Ranks that run out of batches: `uneven_inputs`."""

import torch
from torch import nn

from grader import on_ranks, probe

from .waiting import SECONDS


class Tanh(nn.Module):
    """One layer whose loss is the mean square of its output, less a target; a frozen scale."""

    def __init__(self, weight, bias):
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight.clone()), nn.Parameter(bias.clone())
        self.scale = nn.Parameter(torch.full_like(bias, 2.0), requires_grad=False)

    def forward(self, x):
        return (x @ self.weight + self.bias).tanh() * self.scale


def uneven_loss(model, x):
    """Return the scalar loss of a batch (rows, columns)."""
    return (model(x) - 0.5).square().mean()


UNEVEN_MAKERS = {
    "sgd": lambda params: torch.optim.SGD(params, lr=0.3),
    "adam": lambda params: torch.optim.Adam(params, lr=0.1),
    "momentum": lambda params: torch.optim.SGD(params, lr=0.2, momentum=0.9, weight_decay=0.1),
}


@probe
def trained_unevenly(student, weight, bias, batches, kind):
    """Return per rank the rounds, the parameters afterwards, and what happened in which order."""

    def body(rank):
        model = Tanh(weight, bias)
        model.weight.grad = torch.full_like(weight, 5.0)
        notes = []
        optimizer = UNEVEN_MAKERS[kind](model.parameters())
        optimizer.register_step_post_hook(lambda *_: notes.append("step"))

        def source():
            for number, batch in enumerate(batches[rank]):
                notes.append(f"batch {number}")
                yield batch

        def loss(model, batch):
            notes.append("loss")
            return uneven_loss(model, batch)

        rounds = student.uneven_inputs(model, optimizer, source(), loss)
        return {
            "rounds": rounds,
            "parameters": [p.detach().clone() for p in model.parameters()],
            "notes": notes,
        }

    return on_ranks(len(batches), body, seconds=SECONDS)
