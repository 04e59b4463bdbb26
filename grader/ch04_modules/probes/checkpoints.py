"""Probes of `collect_state` and `load_state`."""

import torch
from torch import nn

from grader import probe

from .module_graphs import build


@probe
def collected(student, graphs):
    """Return for each graph the names, and each tensor as a number, of `collect_state`.

    A tensor is known by its values, so that a copy is known too. What has none of them is named by type.
    """
    found = []
    for graph in graphs:
        modules, parameters, buffers = build(graph)
        tensors, _ = student.collect_state(modules[0])
        values = [float(tensor.flatten()[0]) for tensor in (*parameters, *buffers)]
        found.append([(name, _number(tensor, values)) for name, tensor in tensors.items()])
    return found


def _number(tensor, values):
    if not isinstance(tensor, torch.Tensor) or not tensor.numel():
        return type(tensor).__name__
    value = float(tensor.detach().flatten()[0])
    return values.index(value) if value in values else f"other values: {value:g}"


@probe
def collected_once(student):
    """Return the tensors of a small model, collected before its values change; and whose they are."""
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model[1].bias.requires_grad_(False)
    model.register_buffer("computed", model[0].weight.sum() * 2)
    tensors, _ = student.collect_state(model)
    graph_stays = model.computed.requires_grad
    with torch.no_grad():
        for number, tensor in enumerate(model.state_dict().values()):
            tensor.fill_(number)
    types = {type(tensor).__name__ for tensor in tensors.values()}
    return {
        "tensors": dict(tensors),
        "types": sorted(types),
        "now": model.state_dict(),
        "graph stays": graph_stays,
    }


@probe
def versions(student, graph, others):
    """Return the versions that `collect_state` gives; `others` are pairs of module and version."""
    modules, _, _ = build(graph)
    for number, version in others:
        modules[number].__class__ = type("Versioned", (nn.Module,), {"_version": version})
    _, found = student.collect_state(modules[0])
    return list(dict(found).items())


@probe
def loaded(student, graph, tensors, options):
    """Load `tensors`; return what came of it, and the model's tensors afterwards."""
    modules, parameters, _ = build(graph)
    for parameter in parameters[1::2]:
        parameter.requires_grad_(False)
    objects = [dict(module._parameters) for module in modules]
    given = dict(tensors)
    report, error = None, None
    try:
        report = student.load_state(modules[0], given, **options)
    except RuntimeError as raised:
        error = str(raised)
    same = all(
        module._parameters.get(name) is parameter
        for module, before in zip(modules, objects, strict=True)
        for name, parameter in before.items()
    )
    addresses = {tensor.data_ptr() for tensor in tensors.values() if tensor.numel()}
    now = held(modules)
    return {
        "report": report,
        "error": error,
        "now": {place: tensor.detach() for place, tensor in now.items()},
        "wants grad": {place: tensor.requires_grad for place, tensor in now.items()},
        "same objects": same,
        "shares memory": any(t.data_ptr() in addresses for t in now.values()),
        "names given": list(given),
    }


def held(modules):
    """Return what each module holds now, by place: "m[0].weight"."""
    return {
        f"m[{number}].{name}": tensor
        for number, module in enumerate(modules)
        for name, tensor in [*module._parameters.items(), *module._buffers.items()]
        if tensor is not None
    }


@probe
def upgraded(student, tensors, saved, as_root):
    """Load into a model whose modules upgrade old entries; return the calls and the tensors.

    The model stands in another under the name `net`, or by itself if `as_root`.
    """
    calls = []

    class Scale(nn.Module):
        _version = 3

        def __init__(self):
            super().__init__()
            self.gain = nn.Parameter(torch.zeros(2))

        def upgrade(self, entries, version):
            calls.append(("scale", sorted(entries), version))
            if version is None and "weight" in entries:  # as it was before there were versions
                entries["gain"] = entries.pop("weight")
            return {name: tensor * 2 for name, tensor in entries.items()}

    class Model(nn.Module):
        _version = 2

        def __init__(self):
            super().__init__()
            self.layer1 = Scale()
            self.layer10 = Scale()
            self.shared = self.layer1
            self.plain = nn.Linear(2, 1, bias=False)

        def upgrade(self, entries, version):
            calls.append(("model", sorted(entries), version))
            return {name.replace("old_layer", "layer"): tensor for name, tensor in entries.items()}

    net = Model()
    model = net if as_root else nn.ModuleDict({"net": net})
    given, given_versions = dict(tensors), None if saved is None else dict(saved)
    report, error = None, None
    try:
        report = student.load_state(model, given, given_versions)
    except RuntimeError as raised:
        error = str(raised)
    return {
        "calls": calls,
        "report": report,
        "error": error,
        "layer1": net.layer1.gain.detach(),
        "layer10": net.layer10.gain.detach(),
        "plain": net.plain.weight.detach(),
        "names given": list(given),
        "versions given": given_versions,
    }
