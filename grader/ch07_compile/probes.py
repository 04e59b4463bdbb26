"""Chapter 7's probes: all of the chapter that runs beside a student's code."""

import contextlib
import warnings

import torch
from torch import nn

from grader import probe
from grader.ch07_compile.internals import TakenArms, has_symbolic_size
from grader.instruments.dynamo import fresh_dynamo
from grader.instruments.flops import watch_flops


def written_function(lines):
    """Return `function(x, w)`, whose body are the given lines."""
    body = "".join(f"\n    {line}" for line in lines)
    namespace = {"torch": torch, "F": nn.functional}
    exec(f"def function(x, w):{body}\n    return x", namespace)
    return namespace["function"]


@probe
def ops_counted(student, lines, calls):
    """Count the ops of the function that `lines` make; also its results without compiling."""
    with fresh_dynamo():
        results, counts = student.count_ops(written_function(lines), [tuple(c) for c in calls])
    plain = written_function(lines)
    return {
        "results": results,
        "expected": [plain(*call) for call in calls],
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
def steady_steps(student, steps):
    """Call one `Steady` for each list of (mean, x, decay); return results and what was compiled."""
    found = []
    with fresh_dynamo():
        for calls in steps:
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
