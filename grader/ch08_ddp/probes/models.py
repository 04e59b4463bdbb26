"""Models whose gradients and states are easily foretold, and copies of both."""

import torch
from torch import nn


class Weighted(nn.Module):
    """Parameters `w` of given shapes; the gradient of each is the tensor that it is multiplied by."""

    def __init__(self, values, frozen=()):
        super().__init__()
        self.w = nn.ParameterList(nn.Parameter(v.clone()) for v in values)
        for number in frozen:
            self.w[number].requires_grad_(False)
        self.tied = self.w[0]

    def forward(self, factors, *, order=None):
        """Add up the products of parameters and factors, in an order; a factor of None: unused."""
        order = range(len(factors)) if order is None else order
        used = [number for number in order if factors[number] is not None]
        return sum((self.w[n] * factors[n]).double().sum() for n in used)


def gradients_of(module):
    """Return copies of all `.grad`s, None where there is none."""
    return [None if p.grad is None else p.grad.clone() for p in module.parameters()]


class Normed(nn.Module):
    """Two layers that share a weight, with a BatchNorm between them."""

    def __init__(self, values):
        super().__init__()
        weight, bias, mean = (v.clone() for v in values)
        self.first = nn.Linear(*weight.shape, dtype=weight.dtype)
        self.norm = nn.BatchNorm1d(len(bias), dtype=weight.dtype)
        self.last = nn.Linear(*weight.shape, dtype=weight.dtype)
        self.last.weight = self.first.weight
        with torch.no_grad():
            self.first.weight.copy_(weight)
            self.first.bias.copy_(bias)
            self.last.bias.copy_(-bias)
        self.norm.running_mean.copy_(mean)

    def forward(self, x):
        return self.last(self.norm(self.first(x)).relu())


def state_of(module):
    """Return copies of all parameters and buffers by name."""
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
