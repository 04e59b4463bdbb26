"""The probe of `parameter_groups`, and the models that it sorts."""

import torch
from torch import nn

from grader import probe


class Scale(nn.Module):
    """A learned scale: a vector that is neither a bias nor a norm's."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))


class _NormedScale(Scale):
    """A scale whose class is merely called like a norm."""


class _Standardise(nn.LayerNorm):
    """A norm whose class is called otherwise."""


KINDS = {
    "linear": lambda: nn.Linear(2, 2),
    "no bias": lambda: nn.Linear(2, 2, bias=False),
    "conv": lambda: nn.Conv1d(2, 2, 1),
    "embedding": lambda: nn.Embedding(2, 2),
    "lstm": lambda: nn.LSTM(2, 2),
    "attention": lambda: nn.MultiheadAttention(2, 1),
    "scale": Scale,
    "batch norm": lambda: nn.BatchNorm1d(2),
    "instance norm": lambda: nn.InstanceNorm2d(2, affine=True),
    "layer norm": lambda: nn.LayerNorm(2),
    "group norm": lambda: nn.GroupNorm(1, 2),
    "rms norm": lambda: nn.RMSNorm(2),
    "own norm": lambda: _Standardise(2),
    "called norm": _NormedScale,
    "relu": nn.ReLU,
}


def assemble(layers, ties=()):
    """Return a model of `layers`, pairs of dotted path and kind, with some parameters tied.

    A kind that begins with "=" is another layer's path: the same module. A tie is a pair of dotted
    parameter names; the first becomes the second.
    """
    model = nn.Module()
    for path, kind in layers:
        owner = model
        *above, last = path.split(".")
        for name in above:
            if name not in owner._modules:
                owner.add_module(name, nn.Module())
            owner = owner._modules[name]
        module = model.get_submodule(kind[1:]) if kind[0] == "=" else KINDS[kind]()
        owner.add_module(last, module)
    for name, other in ties:
        path, _, last = name.rpartition(".")
        setattr(model.get_submodule(path), last, model.get_parameter(other))
    return model


@probe
def grouped(student, layers, ties, beforehand, frozen, decay):
    """Return the groups by the parameters' first names, and what is frozen afterwards.

    `raised` is what the student's ValueError says, `refused` what an optimiser says of the groups.
    """
    model = assemble(layers, ties)
    for name in beforehand:
        model.get_parameter(name).requires_grad_(False)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    arguments = (model, decay) if frozen is None else (model, decay, frozen)
    groups, raised, refused = None, None, None
    try:
        groups = student.parameter_groups(*arguments)
    except ValueError as error:
        raised = str(error) or "ValueError"
    try:
        torch.optim.SGD(
            [dict(group) for group in groups or () if group["params"]] or [{"params": []}]
        )
    except ValueError as error:
        refused = str(error)
    found = groups and [
        ([names.get(id(p), "?") for p in group["params"]], group["weight_decay"])
        for group in groups
    ]
    now_frozen = [name for name, p in model.named_parameters() if not p.requires_grad]
    return {"groups": found, "frozen": now_frozen, "raised": raised, "refused": refused}
