"""Probes of `checkpoint`, and the part of a network that is checkpointed."""

import gc
import weakref

import torch
from torch import nn

from grader import probe, watch_saved
from grader.inside.dispatch import DispatchMode


class Part:
    """What is checkpointed: a function with parameters of its own, which keeps count."""

    def __init__(self, weights, rate):
        self.weights = [nn.Parameter(w.clone()) for w in weights]
        self.rate, self.calls, self.made, self.modes = rate, 0, [], []

    def __call__(self, x, repeat=1, *, options=None, extras=()):
        self.calls += 1
        self.modes.append(torch.is_grad_enabled())
        h = x["x"] if isinstance(x, dict) else x
        h = h[0] if isinstance(h, tuple) else h
        for _ in range(repeat):
            for weight in self.weights:
                h = torch.sigmoid(h @ weight)
                self._note(h)
                with Results(self._note):  # its mask is computed inside as well
                    h = nn.functional.dropout(h, self.rate) if self.rate else h
        for extra in extras:
            h = h * extra.exp()
        if options == "tuple":
            return h, (h * 2).sum(), "text"
        if options == "dict":
            return {"h": h, "sum": h.sum()}
        return h

    def _note(self, tensor):
        self.made.append(weakref.ref(tensor.untyped_storage()))

    def alive(self):
        """Return how many of the tensors that were made in the last call are alive."""
        storages = [storage() for storage in self.made]
        return len({id(storage) for storage in storages if storage is not None})


class Results(DispatchMode):
    """Hands every tensor that an operator returns to a function."""

    def __init__(self, note):
        super().__init__()
        self.note = note

    def after(self, operator, args, kwargs, result):
        if isinstance(result, torch.Tensor):
            self.note(result)


def tensors_of(result):
    """Return the tensors of what a part returned, in order."""
    if isinstance(result, torch.Tensor):
        return [result]
    values = result.values() if isinstance(result, dict) else result
    return [value for value in values if isinstance(value, torch.Tensor)]


def form_of(result):
    """Return what kind of thing a part returned."""
    if isinstance(result, tuple):
        return [type(item).__name__ for item in result]
    return sorted(result) if isinstance(result, dict) else type(result).__name__


def run_part(call, weights, x, rate, repeat, form, needs_grad, backwards=1):
    """Call a part by `call` and go back; return values, gradients, calls and random numbers."""
    part = Part(weights, rate)
    x = x.clone().requires_grad_(needs_grad)
    extra = (x.detach()[:, :1] * 0.1).requires_grad_(needs_grad)
    argument = {"tuple": (x,), "dict": {"x": (x, 3)}}.get(form, x)
    torch.default_generator.manual_seed(7)
    before = torch.rand(1)
    result = call(part, argument, repeat, options=form, extras=[extra, extra + 1])
    found = tensors_of(result)
    values, after = [t.detach().clone() for t in found], torch.rand(1)
    calls = [part.calls]
    for turn in range(backwards):
        total = sum((t * t).sum() for t in found)
        total.backward(retain_graph=turn + 1 < backwards)
        calls.append(part.calls)
    return {
        "form": form_of(result),
        "values": values,
        "grads": [t.grad for t in (*part.weights, x, extra)],
        "random": [before, after, torch.rand(1)],
        "calls": calls,
        "modes": part.modes,
    }


@probe
def checkpointed(student, weights, x, rate, repeat, form, needs_grad, backwards):
    """Return what comes of a part that is checkpointed."""
    return run_part(student.checkpoint, weights, x, rate, repeat, form, needs_grad, backwards)


@probe
def checkpoint_in_parts(student, weights, x):
    """Return gradients asked for one by one, of two checkpointed parts in a row."""
    one, two = Part(weights, 0.0), Part(weights, 0.25)
    x = x.clone().requires_grad_()
    torch.default_generator.manual_seed(11)
    h = student.checkpoint(two, student.checkpoint(one, x))
    last = two.weights[-1]
    (only_last,) = torch.autograd.grad(h.sum(), last, retain_graph=True)
    grads = [t.grad for t in (x, *one.weights, *two.weights)]
    first = torch.autograd.grad(h.sum(), (x, one.weights[0]))
    return {"one by one": [only_last, *first], "touched": [g is not None for g in grads]}


@probe
def checkpoint_without_grad(student, weights, x):
    """Return value, recording and calls of a call under `no_grad`."""
    part = Part(weights, 0.0)
    with torch.no_grad():
        y = student.checkpoint(part, x)
    return {"y": y, "calls": part.calls}


@probe
def checkpoint_keeps(student, weights, x):
    """Return what is alive of a part after its forward, and what nodes saved, inputs aside."""
    part = Part(weights, 0.25)
    x = x.clone().requires_grad_()
    with watch_saved() as saved:
        y = student.checkpoint(part, x, 3)
    total = y.sum()
    del y
    gc.collect()
    alive = part.alive()
    total.backward()
    part.made.clear()
    calls = part.calls
    del total
    y = student.checkpoint(part, x, 3)
    del y
    gc.collect()
    dropped = part.alive()
    inner = (x, *part.weights)
    found = {"alive": alive, "dropped": dropped, "calls": calls}
    return {**found, "saved": saved.bytes_without(*inner)}
