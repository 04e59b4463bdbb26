"""Probes of `replace_linears`, and the layers that it meets."""

from itertools import islice

import torch
from torch import nn

from grader import probe

from .module_graphs import MOST, build


class _Own(nn.Linear):
    """A subclass of nn.Linear."""


class _LinearLike(nn.Module):
    """A layer that is called like nn.Linear, has its attributes, and is none."""

    def __init__(self):
        super().__init__()
        self.in_features = self.out_features = 2
        self.weight = nn.Parameter(torch.ones(2, 2))


class _Wrapper(nn.Module):
    """What `wrap` makes: twice what the layer gives."""

    def __init__(self, path, inner, number):
        super().__init__()
        self.path, self.number, self.inner = path, number, inner

    def forward(self, x):
        return 2 * self.inner(x)


WRITTEN = {
    "linear": "nn.Linear(2, 2)",
    "own": "Own(2, 2)",
    "bilinear": "nn.Bilinear(2, 2, 2)",
    "called linear": "LinearLike()",
    "module": "nn.Module()",
}
"""How each kind of layer is written; `class Own(nn.Linear)`, `class LinearLike(nn.Module)`."""

LAYERS = {
    "linear": lambda: nn.Linear(2, 2),
    "own": lambda: _Own(2, 2),
    "bilinear": lambda: nn.Bilinear(2, 2, 2),
    "called linear": _LinearLike,
    "module": nn.Module,
}


@probe
def replaced(student, graph, kinds, fails_at):
    """Replace; return what came back, the calls, and every name with what is there afterwards.

    `kinds` has a kind of `LAYERS` for each module; `wrap` raises at call number `fails_at`.
    """
    # modules that are registered in order, as in `build`, but of different kinds
    pending = iter(kinds)
    modules, _, _ = build(graph, lambda: LAYERS[next(pending)]())
    calls, wrappers = [], []

    def wrap(path, linear):
        if len(calls) == fails_at:
            raise LookupError("wrap")
        calls.append((path, *[n for n, m in enumerate(modules) if m is linear]))
        wrappers.append(_Wrapper(path, linear, len(wrappers)))
        return wrappers[-1]

    result, error = None, None
    try:
        result = student.replace_linears(modules[0], wrap)
    except LookupError:
        error = "LookupError"
    names = {id(module): f"module {n}" for n, module in enumerate(modules)}
    names |= {id(wrapper): f"wrapper {n}" for n, wrapper in enumerate(wrappers)}
    root = modules[0] if result is None else result
    walk = islice(root.named_modules(remove_duplicate=False), MOST)
    return {
        "result": names.get(id(result)),
        "calls": calls,
        "error": error,
        "names": [(name, names.get(id(module), type(module).__name__)) for name, module in walk],
    }


@probe
def replaced_forward(student, x):
    """Return what models give before and after their linear layers were doubled."""

    class Skips(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(2, 2)
            self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(2, 2)), _Own(2, 2)])
            self.last = self.first

        def forward(self, x, double=1):
            x = x + double * self.first(x)
            for block in self.blocks:
                x = x + double * block(x)
            return x + double * self.last(x)

    model = Skips()
    expected = model(x, double=2)
    after = student.replace_linears(model, lambda path, linear: _Wrapper(path, linear, 0))
    paths = ("first", "blocks.0.0", "blocks.1", "last")
    bare = [path for path in paths if not isinstance(model.get_submodule(path), _Wrapper)]
    return {
        "expected": expected.detach(),
        "got": after(x).detach(),
        "bare": bare,
        "same": model.first is model.last,
        "parameters": sum(1 for _ in model.parameters()),
    }
