"""The probe of `train_step`, and the model that it trains."""

import gc
import weakref

import torch
from torch import nn

from grader import probe

from .alive import Token


class Watched(nn.Module):
    """A small classifier that notes each call's size, and how many earlier graphs are alive.

    `second` stands in two modules, as a tied weight does, and `unused` in no computation.
    """

    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = nn.Parameter(first.clone()), nn.Parameter(second.clone())
        self.unused = nn.Parameter(torch.ones(2, dtype=first.dtype))
        self.head = nn.Module()
        self.head.register_parameter("weight", self.second)
        self.sizes, self.alive, self.modes, self._tokens = [], [], [], []

    def forward(self, inputs):
        self.sizes.append(len(inputs))
        self.alive.append(self.graphs())
        self.modes.append(self.training)
        logits = torch.tanh(inputs @ self.first) @ self.second
        if logits.grad_fn is not None:
            token = logits.grad_fn.metadata["token"] = Token()
            self._tokens.append(weakref.ref(token))
        return logits

    def graphs(self):
        """Return how many graphs of earlier calls are alive."""
        return sum(token() is not None for token in self._tokens)


OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.3),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.3, momentum=0.9),
    "decay": lambda parameters: torch.optim.SGD(parameters, lr=0.3, weight_decay=0.2),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.1),
}

OPTIMIZER_CODE = {
    "sgd": "torch.optim.SGD(model.parameters(), lr=0.3)",
    "momentum": "torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)",
    "decay": "torch.optim.SGD(model.parameters(), lr=0.3, weight_decay=0.2)",
    "adam": "torch.optim.Adam(model.parameters(), lr=0.1)",
}
"""What a message says of each of them."""


@probe
def stepped(student, weights, optimizer, steps, stale, training):
    """Return parameters and losses after each of `steps`, a list of lists of pieces.

    `stale` fills `.grad` before the first step. Also the calls' sizes and the graphs alive then.
    """
    model = Watched(*weights).train(training)
    made = OPTIMIZERS[optimizer](model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, stale) if stale else None
    losses, parameters, left = [], [], []
    for batches in steps:
        losses.append(student.train_step(model, made, batches))
        gc.collect()
        left.append(model.graphs())
        parameters.append([p.detach().clone() for p in model.parameters()])
    return {
        "losses": losses,
        "parameters": parameters,
        "sizes": model.sizes,
        "alive": model.alive,
        "left": left,
        "modes": model.modes,
    }
