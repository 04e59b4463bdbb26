"""Small models, by name, that probes of what is inside a model watch."""

import torch
from torch import nn


class Answers(nn.Module):
    """Returns what it is given in tuples, lists and dicts, with whole numbers beside it."""

    def forward(self, x):
        return {"out": x, "more": (x * 2, [x[:1].half(), torch.arange(3)], None), "name": "answers"}


class TakesOut(nn.Module):
    """Takes one tensor out of what `Answers` returns."""

    def forward(self, answers):
        return answers["out"] + answers["more"][0]


class Twice(nn.Module):
    """Calls one layer two times."""

    def __init__(self):
        super().__init__()
        self.layer, self.act = nn.Linear(6, 6), nn.ReLU()

    def forward(self, x):
        return self.act(self.layer(self.act(self.layer(x))))


MODELS = {
    "plain": lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)),
    "in place": lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Linear(6, 2)),
    "twice": lambda: nn.Sequential(nn.Linear(4, 6), Twice(), nn.Linear(6, 2)),
    "answers": lambda: nn.Sequential(nn.Linear(4, 6), Answers(), TakesOut()),
    "half": lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)).half(),
    "normed": lambda: nn.Sequential(
        nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(6, 2)
    ),
}
"""All take (batch, 4)."""


def built(kind, weights):
    """Return a model of this kind with these parameters, in their order."""
    model = MODELS[kind]()
    with torch.no_grad():
        for parameter, weight in zip(model.parameters(), weights, strict=True):
            parameter.copy_(weight)
    return model


def shapes_of(kind):
    """Return the shapes of a model's parameters, in their order."""
    return [tuple(parameter.shape) for parameter in MODELS[kind]().parameters()]
