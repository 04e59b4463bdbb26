"""Chapter 7's probes: all of the chapter that runs beside a student's code."""

import contextlib
import copy
import functools
import gc
import operator
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from functorch.compile import aot_function, make_boxed_func, nop
from torch import fx, nn
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses import FakeTensorMode
from torch.nn import functional

from grader import probe
from grader.instruments.dynamo import fresh_dynamo
from grader.instruments.flops import watch_flops
from grader.instruments.memory import watch_memory
from grader.instruments.saved import watch_saved

aten = torch.ops.aten

# ── What rests on torch's internals (listed in grader/core/internals.py) ─────────────────────────


class TakenArms(torch.fx.Interpreter):
    """Runs a graph op by op; of a `cond` only the arm that is taken, and that op by op too.

    `torch.ops.higher_order.cond` takes (predicate, arm, arm, operands) in torch 2.13. Called as it
    is it cannot run under an instrument's dispatch mode.
    """

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Run one call."""
        if target is torch.ops.higher_order.cond:
            predicate, yes, no, operands = args
            return TakenArms(yes if predicate else no).run(*operands)
        return super().call_function(target, args, kwargs)


def has_symbolic_size(graph_module: torch.fx.GraphModule, dim: int) -> bool:
    """Say whether any matrix among the graph's inputs has a symbol for its size in `dim`.

    Dynamo keeps a fake tensor of each placeholder under `meta["example_value"]` in torch 2.13.
    """
    inputs = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    examples = [node.meta.get("example_value") for node in inputs]
    return any(
        isinstance(example.shape[dim], torch.SymInt)
        for example in examples
        if isinstance(example, torch.Tensor) and example.dim() == 2
    )


class JointCaught(Exception):
    """Ends tracing once the joint graph is there, so that the function itself never runs."""


def capture_joint(
    function: Callable, inputs: Sequence[torch.Tensor]
) -> tuple[torch.fx.GraphModule, tuple, int]:
    """Return the joint graph of a function, its joint inputs and its number of forward outputs.

    torch 2.13.0 calls `partition_fn(joint, joint_inputs, *, num_fwd_outputs, **options)`, where
    `joint_inputs` is a pair: the primals and the tangents.
    """
    caught = {}

    def catch(joint: Any, joint_inputs: Any, *, num_fwd_outputs: int, **_: Any) -> None:
        caught["all"] = joint, joint_inputs, num_fwd_outputs
        raise JointCaught

    with contextlib.suppress(JointCaught):
        aot_function(function, fw_compiler=nop, bw_compiler=nop, partition_fn=catch)(*inputs)
    return caught["all"]


def joint_record(graph: torch.fx.Graph) -> tuple[list[dict], list[str | None]]:
    """Return a graph as data: a list of dicts in order, and the names that it returns.

    torch 2.13.0 keeps what a node returns in `node.meta["val"]`: a fake tensor, or a tuple of them.
    """
    nodes = []
    for node in graph.nodes:
        if node.op == "output":
            continue
        value = node.meta.get("val")
        plain = isinstance(value, torch.Tensor)
        nodes.append(
            {
                "name": node.name,
                "op": node.op,
                "target": str(node.target) if node.op == "call_function" else "",
                "inputs": [one.name for one in node.all_input_nodes],
                "bytes": value.numel() * value.element_size() if plain else 0,
                "tuple": isinstance(value, tuple | list),
                "getitem": node.target is operator.getitem,
                "random": torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()),
            }
        )
    returned = graph.output_node().args[0]
    return nodes, [one.name if isinstance(one, torch.fx.Node) else None for one in returned]


def called_targets(graph: torch.fx.Graph) -> list[str]:
    """Return the names of the operators that a graph calls, sorted."""
    return sorted(str(node.target) for node in graph.nodes if node.op == "call_function")


# ── Programs under capture ──


def written_function(lines):
    """Return `function(x, w)`, whose body are the given lines."""
    body = "".join(f"\n    {line}" for line in lines)
    namespace = {"torch": torch, "F": nn.functional}
    exec(f"def function(x, w):{body}\n    return x", namespace)
    return namespace["function"]


@probe
def ops_counted(student, lines, calls):
    """Count the ops of the function that `lines` make; also its results without compiling."""
    plain, given = written_function(lines), [tuple(call) for call in copy.deepcopy(calls)]
    with fresh_dynamo():
        results, counts = student.count_ops(written_function(lines), given)
    return {
        "results": results,
        "expected": [plain(*call) for call in copy.deepcopy(calls)],
        "counts": counts,
    }


@probe
def ops_counted_in_module(student, x):
    """Count the ops of a module that calls modules."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 2), nn.ReLU()))
    with fresh_dynamo():
        results, counts = student.count_ops(model, [(x,), (x + 1,)])
    return {"results": results, "expected": [model(x), model(x + 1)], "counts": counts}


@probe
def ops_counted_again(student, x, times):
    """Count the ops of one function many times over, and those of another in between."""

    def first(x):
        return (x.sin() + 1).cos()

    def second(x):
        return x.exp()

    with fresh_dynamo(), warnings.catch_warnings(), contextlib.redirect_stderr(None):
        torch.compile(first, backend="eager")(x)
        return [student.count_ops([first, first, second][i % 3], [(x,)])[1] for i in range(times)]


@probe
def recompilations(student, sequences, dynamic):
    """Return the prediction for each sequence of calls."""
    return [
        student.recompiles([dict(call) for call in calls], choice)
        for calls, choice in zip(sequences, dynamic, strict=True)
    ]


def calls_of_captured(make, lines, tensors, held, calls):
    """Make a callable of `lines` and call it; return what came, and who ran how often by then.

    make: takes the function and a backend, and returns what is called
    lines: the body of `function(*args)`; it may use x (the first argument), args, w and v (held)
    tensors, held: what the calls share and the function holds
    calls: dicts with `args` (["tensor", number] or ["plain", value]); optional: `grad`, `backward`,
        `write` (a number that is added in place to `w` before the call)
    """
    tensors = [t.detach().clone().requires_grad_(t.requires_grad) for t in tensors]
    w, v = (t.detach().clone().requires_grad_(t.requires_grad) for t in held)
    runs, graphs, graph_runs, inputs = [], [], [], []
    body = "".join(f"\n    {line}" for line in ["runs.append(1)", "x = args[0]", *lines])
    namespace = {"torch": torch, "F": nn.functional, "runs": runs, "w": w, "v": v}
    exec(f"def function(*args):{body}", namespace)

    def backend(graph_module, example_inputs):
        graphs.append(isinstance(graph_module, torch.fx.GraphModule))
        inputs.append([t is tensors[i] for t, i in zip(example_inputs, numbers, strict=True)])

        def run(*given):
            graph_runs.append(len(given))
            return graph_module(*given)

        return run

    called = make(namespace["function"], backend)
    notes = []
    for seed, call in enumerate(calls):
        args = [tensors[value] if kind == "tensor" else value for kind, value in call["args"]]
        numbers = [value for kind, value in call["args"] if kind == "tensor"]
        with torch.no_grad():
            w.add_(call.get("write", 0))
        torch.manual_seed(seed)
        try:
            with torch.set_grad_enabled(call.get("grad", True)):
                value = called(*args)
                if call.get("backward"):
                    value.sum().backward()
        except ZeroDivisionError:
            value = "the function's error"
        mode = torch.is_grad_enabled()
        notes.append(
            {
                "value": value,
                "runs": len(runs),
                "graphs": len(graphs),
                "graph runs": len(graph_runs),
                "grad mode": mode,
            }
        )
        torch.set_grad_enabled(True)
    return {
        "calls": notes,
        "are graph modules": all(graphs),
        "example inputs": all(map(all, inputs)),
        "tensors": [t.detach() for t in tensors],
        "gradients": [None if t.grad is None else t.grad for t in [*tensors, w, v]],
    }


@probe
def mini_dynamo(student, lines, tensors, held, calls, limit):
    """Return what a MiniDynamo gives for each call, and how often function and graphs ran."""

    def make(function, backend):
        more = () if limit is None else (limit,)
        return student.MiniDynamo(function, backend, *more)

    with fresh_dynamo():
        return calls_of_captured(make, lines, tensors, held, calls)


@probe
def one_graph_runs(student, cases):
    """Compile `one_graph` and call it with each (x, w, limit); return values, gradients and costs."""
    graphs, products, foreign = [], [], set()

    def backend(graph_module, example_inputs):
        graphs.append(len(graphs))
        for module in graph_module.modules():
            for node in getattr(module, "graph", torch.fx.Graph()).nodes:
                home = getattr(node.target, "__module__", None) or "torch"
                if node.op == "call_function" and home.split(".")[0] not in ("torch", "_operator"):
                    foreign.add(home)

        def run(*inputs):
            with watch_flops() as flops:
                results = TakenArms(graph_module).run(*inputs)
            products.append(flops.total)
            return results

        return run

    found = []
    with fresh_dynamo():
        compiled = torch.compile(student.one_graph, backend=backend, fullgraph=True)
        for x, w, limit in cases:
            x, w = (t.detach().requires_grad_(t.requires_grad) for t in (x, w))
            result, size = compiled(x, w, limit)
            if x.requires_grad:
                (result * torch.arange(result.numel()).reshape(result.shape)).sum().backward()
            found.append(
                {
                    "result": result.detach(),
                    "size": size.detach(),
                    "size requires grad": size.requires_grad,
                    "gradients": [x.grad, w.grad],
                    "graphs": len(graphs),
                    "products": products[-1] if products else None,
                }
            )
    return {"cases": found, "foreign calls": sorted(foreign)}


@probe
def steady_steps(student, mean_and_x):
    """Call one `Steady` for each list of (mean, x, decay); return results and what was compiled."""
    found = []
    with fresh_dynamo():
        for calls in mean_and_x:
            graphs, outputs = [], []

            def backend(graph_module, example_inputs, graphs=graphs, outputs=outputs):
                graphs.append([has_symbolic_size(graph_module, dim) for dim in (0, 1)])

                def run(*inputs):
                    results = graph_module(*inputs)
                    outputs[:] = results
                    return results

                return run

            steady = student.Steady(backend)
            notes = []
            for mean, x, decay in calls:
                outputs.clear()
                results = steady(mean, x, decay)
                notes.append(
                    {
                        "results": results,
                        "graphs": len(graphs),
                        "from the graph": [any(r is o for o in outputs) for r in results],
                    }
                )
            found.append({"calls": notes, "symbolic": graphs})
    return found


# ── FX graphs as data: (name, op, target, args, kwargs), where "%x" is the value of node x ──

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


def apply_twice(change, module, inputs):
    """Apply a pass twice; return the graph after each, and what the module then computes."""
    change(module)
    module.graph.lint()
    once = steps_of_graph(module.graph)
    read = [node.target for node in module.graph.nodes if node.op == "get_attr"]
    attributes = {**module.state_dict(), **{name: getattr(module, name) for name in read}}
    attributes = {name: tensor.detach().clone() for name, tensor in attributes.items()}
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


# ── interpret ──


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
    }


@probe
def interpreted_memory(student, steps, x):
    """Return the most bytes that were alive at once, and the result."""
    graph = graph_from_steps(steps, WalkedGraph())
    with watch_memory() as memory:
        result = student.interpret(graph, nn.Module(), x)
    return {"result": result, "peak bytes": memory.peak_bytes}


# ── passes that change a graph in place ──


@probe
def dead_removed(student, steps, inputs, attributes):
    """Return what `remove_dead` makes of a graph."""
    return apply_twice(student.remove_dead, module_from_steps(steps, attributes), inputs)


@probe
def calls_shared(student, steps, inputs):
    """Return what `share` makes of a graph."""
    return apply_twice(student.share, module_from_steps(steps, {}), inputs)


@probe
def constants_folded(student, steps, inputs, attributes, parameters):
    """Return what `fold_constants` makes of a graph, and two runs after a training step.

    parameters: the names of those attributes that are parameters
    """
    module = module_from_steps(steps, attributes, parameters)
    found = apply_twice(student.fold_constants, module, inputs)
    return {**found, "later": run_trained(module, inputs)}


def run_trained(module, inputs):
    """Add one to each parameter; return two runs from then on."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1)
    return run_twice(module, inputs)


@probe
def simplified(student, steps, inputs):
    """Return what `simplify` makes of a graph whose nodes have `meta["val"]`."""
    return apply_twice(student.simplify, with_values(module_from_steps(steps, {}), inputs), inputs)


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


@probe
def kernels_fused(student, steps, inputs):
    """Return the kernels as lists of nodes' names, and whether the graph is as it was."""
    module = with_values(module_from_steps(steps, {}), inputs)
    kernels = student.fuse(module.graph)
    return {
        "kernels": [[node.name for node in kernel] for kernel in kernels],
        "unchanged": steps_of_graph(module.graph)
        == steps_of_graph(module_from_steps(steps, {}).graph),
    }


@probe
def matmuls_merged(student, steps, inputs):
    """Return what `merge_matmuls` makes of a graph; a graph in no order that can run is said."""
    module = with_values(module_from_steps(steps, {}), inputs)
    student.merge_matmuls(module)
    seen = set()
    for node in module.graph.nodes:
        if not seen.issuperset(node.all_input_nodes):
            return {"early": True}
        seen.add(node)
    module.graph.lint()
    once, code = steps_of_graph(module.graph), module.code
    module.recompile()
    fresh = module.code == code
    runs = run_twice(module, inputs)
    student.merge_matmuls(with_values(module, inputs))
    twice = steps_of_graph(module.graph)
    return {"early": False, "once": once, "twice": twice, "runs": runs, "recompiled": fresh}


@probe
def pattern_replaced(student, steps, pattern, replacement, inputs):
    """Return what `replace_pattern` makes of a graph, and what it says."""
    module, templates = module_from_steps(steps, {}), (pattern, replacement)
    graphs = [graph_from_steps(template) for template in templates]
    count = student.replace_pattern(module, *graphs)
    module.graph.lint()
    once, code = steps_of_graph(module.graph), module.code
    runs = run_twice(module, inputs)
    module.recompile()
    return {
        "count": count,
        "once": once,
        "runs": runs,
        "recompiled": module.code == code,
        "templates unchanged": [
            steps_of_graph(graph) == steps_of_graph(graph_from_steps(template))
            for graph, template in zip(graphs, templates, strict=True)
        ],
    }


# ── Joint graphs: programs as data, and graphs built without tracing ──

JOINT_STEPS = {
    "sin": torch.sin,
    "cos": torch.cos,
    "exp": torch.exp,
    "sigmoid": torch.sigmoid,
    "mul": torch.mul,
    "add": torch.add,
    "mm": torch.mm,
    "rows": lambda value: value.sum(0, keepdim=True),
    "transposed": lambda value: value.t(),
    "peak": lambda value: value.max(1, keepdim=True).values,
    "dropout": lambda value: functional.dropout(value, 0.5),
    "positive": lambda value: value > 0,
    "detached": lambda value: value.detach(),
    "grow": lambda value: value.add_(1),
}
"""Each step takes numbers of values: first the inputs, then the results of the steps before.
All values are (n, n), (1, n) or (n, 1), and broadcast."""


def joint_program(steps: list[tuple], outputs: list[int]) -> Callable:
    """Return a function of tensors that takes the steps and returns the values `outputs`, a tuple."""

    def function(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = list(inputs)
        for kind, *args in steps:
            values.append(JOINT_STEPS[kind](*[values[at] for at in args]))
        return tuple(values[at] for at in outputs)

    return function


def joint_leaves(numbers: list[torch.Tensor], needs_grad: list[bool]) -> list[torch.Tensor]:
    """Return the inputs as leaves that share their memory with `numbers`."""
    return [
        number.detach().requires_grad_(flag)
        for number, flag in zip(numbers, needs_grad, strict=True)
    ]


SEED = 7
"""Of the random operators in a program: both sides draw the same."""


def joint_tangents(joint_inputs: tuple) -> list[torch.Tensor]:
    """Return a value for each tangent: numbers from -1 to 1, none of them the same."""
    return [
        torch.linspace(-1, 1, one.numel(), dtype=one.dtype).reshape(tuple(one.shape))
        for one in joint_inputs[1]
    ]


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


@probe
def joint_read(student, steps, outputs, needs_grad, numbers):
    """Return what `read_joint` says of a program's joint graph."""
    inputs = joint_leaves(numbers, needs_grad)
    return student.read_joint(joint_program(steps, outputs), *inputs)


@probe
def joint_cut(student, steps, outputs, needs_grad, numbers, savable):
    """Return what the two graphs of `partition` run and take, what they return, and what is saved."""
    inputs = joint_leaves(numbers, needs_grad)
    joint, joint_inputs, count = capture_joint(joint_program(steps, outputs), inputs)
    before = joint_record(joint.graph)
    forward, backward = student.partition(
        joint,
        joint_inputs,
        num_fwd_outputs=count,
        may_save=lambda node: str(node.target) in savable,
    )
    torch.manual_seed(SEED)
    given = [number.detach().clone() for number in numbers]
    returned = list(forward(*given))
    saved = returned[count:]
    gradients = list(backward(*saved, *joint_tangents(joint_inputs)))
    return {
        "graphs": [isinstance(one, torch.fx.GraphModule) for one in (forward, backward)],
        "forward": called_targets(forward.graph),
        "backward": called_targets(backward.graph),
        "outputs": returned[:count],
        "saved": len(saved),
        "saved bytes": sum(one.numel() * one.element_size() for one in saved),
        "gradients": gradients,
        "joint graph unchanged": joint_record(joint.graph) == before,
    }


@probe
def joint_trained(student, steps, outputs, needs_grad, numbers, savable):
    """Return outputs and gradients of a function that `aot_function` cut with `partition`."""

    def cut(joint, joint_inputs, *, num_fwd_outputs, **_):
        return student.partition(
            joint,
            joint_inputs,
            num_fwd_outputs=num_fwd_outputs,
            may_save=lambda node: str(node.target) in savable,
        )

    inputs = joint_leaves(numbers, needs_grad)
    function = joint_program(steps, outputs)
    results = aot_function(function, fw_compiler=nop, bw_compiler=nop, partition_fn=cut)(*inputs)
    sum(result.sum() for result in results).backward()
    return {
        "outputs": [result.detach() for result in results],
        "gradients": [leaf.grad for leaf in inputs],
    }


@probe
def joint_min_cut(student, graphs, heavy):
    """Return what `min_cut` wants to save of each graph: names, and whether they are nodes of it."""
    answers = []
    targets = {CUT_TARGETS[kind] for kind in heavy}
    for graph in graphs:
        joint, joint_inputs, count = build_cut_graph(graph)
        before = joint_record(joint.graph)
        saved = student.min_cut(joint, joint_inputs, num_fwd_outputs=count, heavy=targets)
        saved = list(saved)
        own = all(isinstance(node, torch.fx.Node) and node.graph is joint.graph for node in saved)
        names = [str(getattr(node, "name", node)) for node in saved]
        answers.append((own, names, joint_record(joint.graph) == before))
    return answers


@probe
def joint_min_cut_traced(student, steps, outputs, needs_grad, numbers):
    """Return the names of what `min_cut` wants to save of a traced function, and their bytes."""
    function = joint_program(steps, outputs)
    joint, joint_inputs, count = capture_joint(function, joint_leaves(numbers, needs_grad))
    heavy = {torch.ops.aten.mm.default}
    saved = student.min_cut(joint, joint_inputs, num_fwd_outputs=count, heavy=heavy)
    return [node.name for node in saved]


@functools.cache
def smooth_made(make_smooth):
    """Return the operator; a process registers a name once."""
    return make_smooth()


@probe
def smooth_called(student, x, keep):
    """Return what the operator gives for `x`."""
    return smooth_made(student.make_smooth)(x, keep)


@probe
def smooth_gradient(student, x, keep, cotangent):
    """Return the gradient of `x`, the bytes that autograd kept for it, and who else is kept."""
    smooth, leaf = smooth_made(student.make_smooth), x.detach().requires_grad_()
    given = leaf + 0
    with watch_saved() as saved:
        result = smooth(given, keep)
    # neither `given` nor `result` is needed any more by anyone but the operator
    after = result + 0
    references = {"input": weakref.ref(given), "result": weakref.ref(result)}
    del given, result
    gc.collect()
    kept = [name for name, reference in references.items() if reference() is not None]
    (gradient,) = torch.autograd.grad(after, leaf, cotangent)
    return {"gradient": gradient, "saved bytes": saved.bytes, "kept": kept}


@probe
def smooth_promise(student, x, keep):
    """Return shape, strides and dtype that the fake kernel promises."""
    smooth = smooth_made(student.make_smooth)
    with FakeTensorMode() as mode:
        promised = smooth(mode.from_tensor(x), keep)
    return list(promised.shape), list(promised.stride()), str(promised.dtype)


@probe
def smooth_compiled(student, xs, keep, cotangents, dynamic):
    """Return results and gradients of a compiled function, and the operators of each graph."""
    smooth, graphs = smooth_made(student.make_smooth), []

    def note(module, inputs):
        graphs.append([str(n.target) for n in module.graph.nodes if n.op == "call_function"])
        return make_boxed_func(module.forward)

    backend = aot_autograd(fw_compiler=note, bw_compiler=note)
    results = []
    with fresh_dynamo():
        run = torch.compile(
            lambda x: smooth(x * 2, keep).sin(), backend=backend, fullgraph=True, dynamic=dynamic
        )
        for x, cotangent in zip(xs, cotangents, strict=True):
            leaf = x.detach().requires_grad_()
            result = run(leaf)
            result.backward(cotangent)
            results.append((result.detach(), leaf.grad))
    counts = [sum("undertorch.smooth" in name for name in graph) for graph in graphs]
    return {"results": results, "graphs": len(graphs), "nodes": counts}


@probe
def smooth_checked(student, x, keep):
    """Return what `opcheck` says of the operator, test by test."""
    smooth = smooth_made(student.make_smooth)
    args = (x.detach().requires_grad_(), keep)
    verdicts = torch.library.opcheck(smooth, args, raise_exception=False)
    return {name: str(verdict).split("\n")[0] for name, verdict in verdicts.items()}
