"""Probes of `count_ops`, on functions that are made of lines."""

import contextlib
import copy
import warnings

import torch
from torch import nn

from grader import fresh_dynamo, probe


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
        for _ in range(10):  # others have filled Dynamo's list before, and it gave up
            torch.compile(first, backend=lambda graph_module, inputs: graph_module.forward)(x)
        return [student.count_ops([first, first, second][i % 3], [(x,)])[1] for i in range(times)]
