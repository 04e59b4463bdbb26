"""FX graphs as data: steps (name, op, target, args, kwargs), "%x" for the value of node x."""

import operator

import torch
from torch import fx, nn

PLAIN_CALLS = {
    "operator.getitem": operator.getitem,
    "operator.setitem": operator.setitem,
    "print": print,
    "dict": dict,
    "torch.sin": torch.sin,
    "torch.stack": torch.stack,
    "torch.rand_like": torch.rand_like,
}
"""Functions that a graph may call beside ATen operators."""


def call_named(name):
    """Return the function of a name such as "aten.add.Tensor" or "operator.getitem"."""
    if name in PLAIN_CALLS:
        return PLAIN_CALLS[name]
    namespace, operation, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), operation), overload)


def name_of_call(target):
    """Return the name of a function; what is no part of any exercise has its Python text."""
    if isinstance(target, str):
        return target
    return next((name for name, call in PLAIN_CALLS.items() if call is target), str(target))


def graph_from_steps(steps, graph=None):
    """Return the `fx.Graph` that steps describe; `graph` is an empty one to write them into."""
    graph = fx.Graph() if graph is None else graph
    nodes = {}

    def read(value):
        match value:
            case str() if value.startswith("%"):
                return nodes[value[1:]]
            case ("slice", *parts):
                return slice(*map(read, parts))
            case tuple() | list():
                return type(value)(map(read, value))
            case dict():
                return {key: read(part) for key, part in value.items()}
        return value

    for name, op, target, args, kwargs in steps:
        if op == "placeholder":
            nodes[name] = graph.placeholder(name)
        elif op == "output":
            nodes[name] = graph.output(read(args)[0])
        else:
            called = call_named(target) if op == "call_function" else target
            nodes[name] = graph.create_node(op, called, read(tuple(args)), read(kwargs), name)
    return graph


def steps_of_graph(graph):
    """Return an `fx.Graph` as steps."""

    def write(value):
        if isinstance(value, fx.Node):
            return f"%{value.name}"
        if isinstance(value, slice):
            return ("slice", write(value.start), write(value.stop), write(value.step))
        if isinstance(value, tuple | list):
            return tuple(map(write, value))
        if isinstance(value, dict):
            return {key: write(part) for key, part in value.items()}
        return value

    return [
        (node.name, node.op, name_of_call(node.target), write(node.args), write(node.kwargs))
        for node in graph.nodes
    ]


def module_from_steps(steps, attributes, parameters=()):
    """Return the `GraphModule` that steps describe."""
    root = nn.Module()
    for name, tensor in attributes.items():
        setattr(root, name, tensor)  # what no step reads would not be copied from here
    module = fx.GraphModule(root, graph_from_steps(steps))
    for name, tensor in attributes.items():
        if hasattr(module, name):
            delattr(module, name)
        if name in parameters:
            parameter = nn.Parameter(tensor.clone(), requires_grad=False)
            module.register_parameter(name, parameter)
        else:
            module.register_buffer(name, tensor.clone())
    return module


def with_values(module, inputs):
    """Give each node of a graph `meta["val"]`: a tensor without memory that has dtype and shape."""

    class Recorder(fx.Interpreter):
        def run_node(self, n):
            value = super().run_node(n)
            n.meta["val"] = fx.node.map_aggregate(
                value, lambda one: one.to("meta") if isinstance(one, torch.Tensor) else one
            )
            return value

    with torch.random.fork_rng(devices=[]):
        Recorder(module).run(*inputs)
    return module


def run_twice(module, inputs):
    """Return outputs and inputs of two runs, one after the other, from the same random state."""
    torch.manual_seed(7)
    runs = []
    for _ in range(2):
        given = [tensor.clone() for tensor in inputs]
        result = module(*given)
        # a copy now: what is returned may be written to by the second run
        copies = fx.node.map_aggregate(result, lambda one: one.clone())
        runs.append({"outputs": copies, "inputs": given})
    return runs


def _tensors_of(module):
    """Yield each tensor that a module keeps, by name: a buffer that is not saved, and what is no buffer, too."""
    for path, part in module.named_modules(remove_duplicate=False):
        for kept in (part._parameters, part._buffers, vars(part)):
            for name, tensor in kept.items():
                if isinstance(tensor, torch.Tensor):
                    yield f"{path}.{name}" if path else name, tensor


def apply_twice(change, module, inputs):
    """Apply a pass twice; return the graph after each, and what the module then computes."""
    change(module)
    module.graph.lint()
    once = steps_of_graph(module.graph)
    attributes = {name: tensor.detach().clone() for name, tensor in _tensors_of(module)}
    runs = run_twice(module, inputs)
    code = module.code
    module.recompile()
    fresh = module.code == code
    change(module)
    return {
        "once": once,
        "twice": steps_of_graph(module.graph),
        "runs": runs,
        "recompiled": fresh,
        "attributes": attributes,
    }
