"""Joint graphs that are built without tracing."""

import torch
from torch import fx

aten = torch.ops.aten


CUT_TARGETS = {
    "sin": aten.sin.default,
    "add": aten.add.Tensor,
    "mm": aten.mm.default,
    "bernoulli": aten.bernoulli.default,
    "cat": aten.cat.default,
    "full": aten.full.default,
}


CUT_DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "b8": torch.bool}


def build_cut_graph(graph: dict) -> tuple[fx.GraphModule, tuple, int]:
    """Return the joint graph, its joint inputs on the meta device, and its number of outputs."""
    built, made = fx.Graph(), {}
    inputs: dict[str, list] = {"primal": [], "tangent": []}
    for name, kind, sources, elements, dtype in graph["nodes"]:
        value = torch.empty(elements, dtype=CUT_DTYPES[dtype], device="meta")
        given = [made[source] for source in sources]
        if kind in inputs:
            node = built.placeholder(name)
            inputs[kind].append(value)
        elif kind == "cat":
            node = built.create_node("call_function", CUT_TARGETS[kind], (given,), name=name)
        elif kind == "full":
            constant = ([elements], 1.0)
            node = built.create_node("call_function", CUT_TARGETS[kind], constant, name=name)
        else:
            node = built.create_node("call_function", CUT_TARGETS[kind], tuple(given), name=name)
        node.meta["val"], made[name] = value, node
    returned = [made[name] if name else None for name in graph["outputs"] + graph["gradients"]]
    built.output(returned)
    module = fx.GraphModule(torch.nn.Module(), built)
    return module, (inputs["primal"], inputs["tangent"]), len(graph["outputs"])
