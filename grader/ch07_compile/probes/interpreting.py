"""Probes of `interpret`, and a module with modules inside."""

import torch
from torch import fx, nn

from grader import probe, watch_memory

from .fx_steps import graph_from_steps, steps_of_graph


class Scaled(nn.Module):
    """Multiplies by its weight, and counts its calls."""

    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight.clone())
        self.calls = 0

    def forward(self, x, *, plus=0):
        self.calls += 1
        return x * self.weight + plus


def interpreted_root(weight):
    """Return a module with `bias`, `layer` (a `Scaled`) and `block.inner.layer` (another one)."""
    root = nn.Module()
    root.bias = nn.Parameter(weight + 1)
    root.layer = Scaled(weight)
    root.block = nn.Module()
    root.block.inner = nn.Module()
    root.block.inner.layer = Scaled(weight * 2)
    return root


class WalkedGraph(fx.Graph):
    """A graph that can be walked and not turned into Python text."""

    def python_code(self, *args, **kwargs):
        raise TypeError("This graph is not to be compiled. Walk its nodes.")


@probe(in_place=("inputs",))
def interpreted(student, steps, weight, inputs):
    """Return the result of a graph, and how often its two modules were called."""
    root, graph = interpreted_root(weight), graph_from_steps(steps, WalkedGraph())
    torch.manual_seed(7)
    result = student.interpret(graph, root, *inputs)
    return {
        "result": fx.node.map_aggregate(
            result, lambda one: one.detach().clone() if isinstance(one, torch.Tensor) else one
        ),
        "calls": (root.layer.calls, root.block.inner.layer.calls),
        "unchanged": steps_of_graph(graph) == steps_of_graph(graph_from_steps(steps)),
        "notes": sorted({str(key) for node in graph.nodes for key in node.meta}),
    }


@probe
def interpreted_memory(student, steps, x):
    """Return the most bytes that were alive at once, and the result."""
    graph = graph_from_steps(steps, WalkedGraph())
    with watch_memory() as memory:
        result = student.interpret(graph, nn.Module(), x)
    return {"result": result, "peak bytes": memory.peak_bytes}
