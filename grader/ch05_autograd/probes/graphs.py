"""Graphs made by recipes, for the probes that walk them."""

import torch
from torch import nn


class Cubed(torch.autograd.Function):
    """A Function that saves a tensor of its own making beside its input."""

    @staticmethod
    def forward(ctx, x):
        square = x * x
        ctx.save_for_backward(x, square)
        return x * square

    @staticmethod
    def backward(ctx, grad):
        _, square = ctx.saved_tensors
        return 3 * square * grad


def build_graph(recipe, numbers):
    """Return (output, leaves by name) of a recipe: (operation, inputs) by number.

    `numbers` (leaves, 4, 4) are the leaves' values; the first inputs are numbered from 0.
    """
    made = build_all(recipe, numbers)
    leaves = {at: leaf for at, leaf in enumerate(made[: len(numbers)]) if leaf.requires_grad}
    return made[-1], leaves


def build_all(recipe, numbers):
    """Return the leaves and the result of each step, in order. Leaf 2 of 3 requires no grad."""
    made = [values.clone().requires_grad_(at % 3 != 2) for at, values in enumerate(numbers)]
    for kind, *inputs in recipe:
        made.append(OPERATIONS[kind](*[made[at] for at in inputs]))
    return made


def write_into(a, b):
    """Return a copy of `a` whose second row is `b`'s first, written in place."""
    copy = a * 2
    copy[1] = b[0]
    return copy


OPERATIONS = {
    "mul": lambda a, b: a * b,
    "add": lambda a, b: a + b,
    "matmul": lambda a, b: a @ b,
    "sigmoid": torch.sigmoid,
    "exp": lambda a: (-a).exp(),
    "view": lambda a: a.t().reshape(2, 8).view(4, 4),
    "expand": lambda a: a[:1].expand(4, 4),
    "rows": lambda a: (a[1] * a[2]).expand(4, 4) + a,
    "slice": lambda a: torch.cat([a[2:], a[:2]]),
    "index": lambda a: a[torch.tensor([3, 1, 0, 0])],
    "chunk": lambda a: torch.cat(list(reversed(a.chunk(2, 1))), 1),
    "one_of": lambda a: a.unbind(0)[2] + a,
    "sum": lambda a: a.sum(1, keepdim=True) + a,
    "max": lambda a: a.max(1, keepdim=True).values * a,
    "norm": lambda a: nn.functional.layer_norm(a, (4,)),
    "cubed": Cubed.apply,
    "detach": lambda a: a.detach() + a,
    "double": lambda a: a + a,
    "row": lambda a: a.unbind(0)[1],
    "spread": lambda a: torch.var_mean(a, 1, keepdim=True)[0] * a,
    "both": lambda a: sum(torch.var_mean(a, 0)) + a,
    "halves": lambda a: a.split([1, 3], 1)[1] @ a.split([1, 3], 0)[1],
    "float": lambda a: a.float()[:, :1],
    "promote": lambda a: a * torch.arange(4.0, dtype=torch.float64),
    "single": lambda a: a.float().exp().double(),
    "write": lambda a, b: (a * 1).index_fill_(0, torch.tensor([1]), 2.0).add_(b),
    "into": write_into,
    "column": lambda a, b: a[:, :1] * b,
    "sort": lambda a: a.sort(1).values,
    "where": lambda a, b: torch.where(a.detach() > b.detach(), a, b),
}
