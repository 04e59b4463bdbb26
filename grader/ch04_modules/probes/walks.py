"""Probes of `named_modules` and `named_tensors`: what a walk gives, and how far it looks."""

from collections import OrderedDict
from itertools import islice

import torch
from torch import nn

from grader import probe

from .module_graphs import MOST, build, numbered


class _Bare(nn.Module):
    """A module without walks: what an exercise asks to build is not there to be called."""

    def _off_limits(self, *args, **kwargs):
        raise RuntimeError("PyTorch's own walks are off limits here.")

    named_modules = modules = named_children = children = _off_limits


@probe
def walked(student, graphs, options, memo):
    """Return for each graph the pairs of its root's walk, and the memo afterwards.

    `options` are passed on; `memo` lists the modules that are in it beforehand, or is None.
    """
    found = []
    for graph in graphs:
        modules, _, _ = build(graph, _Bare)
        passed = dict(options)
        if memo is not None:
            passed["memo"] = {modules[number] for number in memo if number < len(modules)}
        pairs = list(islice(student.named_modules(modules[0], **passed), MOST))
        after = passed.get("memo", ())
        found.append((numbered(pairs, modules), [n for n, m in enumerate(modules) if m in after]))
    return found


@probe
def walked_twice(student, graph):
    """Return the pairs of two walks over one model, one after the other."""
    modules, _, _ = build(graph, _Bare)
    walks = [islice(student.named_modules(modules[0]), MOST) for _ in range(2)]
    return [numbered(walk, modules) for walk in walks]


@probe
def walked_containers(student):
    """Return the names of a walk over containers, some of which hold nothing: Python calls them false."""
    block = nn.ModuleDict({"waiting": nn.ModuleList()})
    model = nn.Sequential(OrderedDict(empty=nn.Sequential(), block=block, last=nn.ReLU()))
    return [name for name, _ in islice(student.named_modules(model), MOST)]


@probe
def walked_at_first(student, graph, options, count):
    """Return the first `count` pairs of a walk, and how many modules were looked into for them."""
    looked = []

    class Watched(_Bare):
        def __getattribute__(self, name):
            if name == "_modules":
                looked.append(id(self))
            return super().__getattribute__(name)

    modules, _, _ = build(graph, Watched)
    looked.clear()
    pairs = list(islice(iter(student.named_modules(modules[0], **options)), count))
    return {"pairs": numbered(pairs, modules), "looked into": len(set(looked))}


@probe
def listed(student, graphs, kind, options):
    """Return for each graph the pairs of `named_tensors`."""
    found = []
    for graph in graphs:
        modules, parameters, buffers = build(graph)
        if options.get("frozen"):
            for parameter in parameters:
                parameter.requires_grad_(False)
        passed = {key: value for key, value in options.items() if key != "frozen"}
        pairs = list(islice(student.named_tensors(modules[0], kind, **passed), MOST))
        found.append(numbered(pairs, parameters if kind == "parameters" else buffers))
    return found


@probe
def listed_views(student):
    """Return the names of parameters that share memory, are equal, or are empty."""
    memory = torch.ones(4)
    module = nn.Module()
    for name in ("whole", "again"):
        module.register_parameter(name, nn.Parameter(memory))
    for name in ("empty", "also_empty"):
        module.register_parameter(name, nn.Parameter(torch.empty(0)))
    for name in ("one", "equal"):
        module.register_parameter(name, nn.Parameter(torch.ones(1)))
    module.register_parameter("one_again", module.one)
    return [name for name, _ in student.named_tensors(module, "parameters")]
