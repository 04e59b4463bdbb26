"""The probe of `MiniDynamo`, and a function of lines that notes who ran."""

import torch
from torch import nn

from grader import fresh_dynamo, probe


def tensor_with_id(gone: set[int]) -> torch.Tensor:
    """Return a tensor (1,) that no `TorchFunctionMode` was shown, with one of these ids if any is free.

    CPython gives freed memory to the next object of that size. Those made in vain are kept meanwhile,
    so that the next one lies elsewhere.
    """
    made = []
    for _ in range(1000):
        made.append(torch.Tensor([3.0]))
        if id(made[-1]) in gone:
            break
    return made[-1]


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
    namespace["tensor_with_id"] = tensor_with_id
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
