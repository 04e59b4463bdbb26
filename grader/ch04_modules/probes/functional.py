"""Probes of `functional_call`, and the tied model that it calls."""

import torch
from torch import nn

from grader import probe

from .groups import Scale


class Tied(nn.Module):
    """A model with a tied weight, a shared module, a buffer that counts, and hooks."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.first = nn.Linear(3, 3)
        self.shared = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Tanh())
        self.again = self.shared
        self.tied = nn.Linear(3, 3)
        self.tied.weight = self.first.weight
        self.pair = nn.ParameterDict({"a": torch.zeros(3), "b": torch.ones(3)})
        self.pairs = nn.ModuleList([self.pair])
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("total", torch.zeros(()), persistent=False)
        with torch.no_grad():
            for number, parameter in enumerate(self.parameters()):
                values = torch.arange(parameter.numel()) + 5.0 * number
                parameter.copy_(values.sin().reshape(parameter.shape))

    def forward(self, x, *, scale=1.0, fail=False):
        self.calls += 1
        self.count += 1
        self.total += x.detach().sum()
        x = self.again(self.tied(self.shared(self.first(x))))
        if fail:
            raise LookupError("forward")
        return x * self.pair["a"] * scale + self.pairs[0]["b"]


def _registries(module):
    """Return what each registry holds, in order, by identity; and each module's mode."""
    return [
        (path, owner.training, [(key, id(tensor)) for key, tensor in registry.items()])
        for path, owner in module.named_modules(remove_duplicate=False)
        for registry in (owner._parameters, owner._buffers, owner._modules)
    ]


def _changes(before, after):
    """Return in words where two results of `_registries` differ; nothing if they are equal."""
    if [entry[0] for entry in before] != [entry[0] for entry in after]:
        return ["the modules' names"]
    found = []
    for (path, training, entries), (_, now_training, now) in zip(before, after, strict=True):
        owner = path or "the model"
        if training != now_training:
            found.append(f"{owner} is in another mode")
        if [key for key, _ in entries] != [key for key, _ in now]:
            found.append(f"{owner} holds {[k for k, _ in now]}, and held {[k for k, _ in entries]}")
        elif entries != now:
            keys = [
                key for (key, one), (_, other) in zip(entries, now, strict=True) if one != other
            ]
            found.append(f"{owner} has another object as {', '.join(keys)}")
    return found


@probe(in_place=("tensors",))
def called(student, tensors, x, options, call, same):
    """Call a model with `tensors`; return what came of it, and in what state the model is.

    `options` go to functional_call, `call` are the keyword arguments of forward; `same` are pairs of
    names of which the second gets the very tensor of the first.
    """
    model, hooked = Tied(), []
    given = {**tensors, **{other: tensors[name] for name, other in same}}
    model.register_forward_hook(lambda *_: hooked.append("model"))
    model.first.register_forward_hook(lambda *_: hooked.append("first"))
    before = _registries(model)
    values = {name: tensor.detach().clone() for name, tensor in model.named_parameters()}
    result, error, words = None, None, ""
    try:
        result = student.functional_call(model, given, (x,), call, **options)
    except (RuntimeError, ValueError, LookupError) as raised:
        error, words = type(raised).__name__, str(raised)[:200]
    changed = _changes(before, _registries(model))
    if not changed and any(
        not torch.equal(p.detach(), values[name]) for name, p in model.named_parameters()
    ):
        changed = ["values of parameters"]
    return {
        "result": result if result is None else result.detach(),
        "error": error,
        "words": words,
        "names given": list(given),
        "changed": changed,
        "calls": model.calls,
        "hooked": hooked,
        "count": model.count.detach(),
        "total": model.total.detach(),
    }


@probe
def called_swapped(student, x, names):
    """Let two of the model's own parameters change places for one call."""
    model = Tied()
    before = _registries(model)
    one, other = (model.get_parameter(name) for name in names)
    result = student.functional_call(model, {names[0]: other, names[1]: one}, (x,))
    return {"result": result.detach(), "changed": _changes(before, _registries(model))}


@probe
def called_gradients(student, tensors, x):
    """Return the gradients of the given tensors, and whether the model's own have any."""
    model = Tied()
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in tensors.items()}
    student.functional_call(model, dict(leaves), (x,)).square().sum().backward()
    return {
        "grads": {name: leaf.grad for name, leaf in leaves.items()},
        "own": [n for n, p in model.named_parameters() if p.grad is not None],
    }


@probe
def called_views(student, given):
    """Replace one of two parameters that lie in the same memory, then one of two empty ones."""
    memory, model = torch.ones(2), nn.Module()
    model.one, model.two = nn.Parameter(memory), nn.Parameter(memory)
    model.none, model.empty = nn.Parameter(torch.ones(0)), nn.Parameter(torch.ones(0))
    model.forward = lambda: (model.one + 10 * model.two, model.empty)
    found, _ = student.functional_call(model, {"one": given})
    _, empty = student.functional_call(model, {"none": given})
    return {"found": found.detach(), "empty": empty.detach()}


@probe
def called_transforms(student, tensors, x):
    """Return an ensemble's outputs, and a gradient's gradient, through torch's transforms."""
    model = nn.Sequential(nn.Linear(3, 2), nn.Tanh())

    def run(given, x):
        return student.functional_call(model, given, (x,))

    def loss(given):
        return run(given, x).square().sum()

    ensemble = torch.vmap(run, in_dims=(0, None))(tensors, x)
    one = {name: tensor[0] for name, tensor in tensors.items()}
    direction = {name: torch.ones_like(tensor) for name, tensor in one.items()}
    _, curvature = torch.func.jvp(torch.func.grad(loss), (one,), (direction,))
    return {"ensemble": ensemble, "curvature": curvature}


@probe
def called_on(student, weight, x):
    """Return what a single layer gives with another weight, and without any argument to change."""
    layer = nn.Linear(3, 2, bias=False)
    layer.extra = None
    bare = Scale()
    bare.forward = lambda: bare.scale * 3
    return {
        "layer": student.functional_call(layer, {"weight": weight}, (x,)).detach(),
        "bare": student.functional_call(bare, {"scale": weight[0]}).detach(),
        "nothing": student.functional_call(bare, {}).detach(),
    }
