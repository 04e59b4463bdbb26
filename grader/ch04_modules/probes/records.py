"""Probes of `recording`, and the models that are watched."""

import gc
import weakref
from contextlib import suppress

import torch
from torch import nn

from grader import probe


class _Watched(nn.Module):
    """A model with an in-place layer, a shared one, and outputs of several kinds."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(3, 3)
        self.act = nn.ReLU(inplace=True)
        self.block = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
        self.again = self.stem
        self.unused = nn.Linear(3, 3)
        with torch.no_grad():
            for number, parameter in enumerate(self.parameters()):
                values = torch.arange(parameter.numel()) + 3.0 * number
                parameter.copy_(values.sin().reshape(parameter.shape))

    def forward(self, x):
        return self.block(self.act(self.again(self.act(self.stem(x)))))


def recorded_by_hand(x, calls):
    """Return the outputs of each layer of `_Watched`, computed step by step."""
    model, seen = _Watched(), {"stem": [], "act": [], "block.0": [], "block": [], "unused": []}
    with torch.no_grad():
        for _ in range(calls):
            for given in (lambda: x, lambda: seen["act"][-1]):
                seen["stem"].append(model.stem(given()))
                seen["act"].append(seen["stem"][-1].clamp(min=0))
            seen["block.0"].append(model.block[0](seen["act"][-1]))
            seen["block"].append(seen["block.0"][-1].tanh())
    return seen


@probe
def recorded(student, x, paths, calls):
    """Record `calls` calls; return what was seen, in pairs to keep the order."""
    model = _Watched()
    with student.recording(model, paths) as seen:
        for _ in range(calls):
            model(x)
    return [(path, list(outputs)) for path, outputs in dict(seen).items()]


@probe
def recorded_gradients(student, x):
    """Return output and gradients of a call, watched and not; and what changed what is recorded."""
    found = {}
    for watched in (True, False):
        model = _Watched()
        leaf = x.clone().requires_grad_()
        if watched:
            with student.recording(model, ["stem", "block.1", "act"]) as seen:
                found["grad enabled"] = torch.is_grad_enabled()
                y = model(leaf)
        else:
            y = model(leaf)
        if y.requires_grad:
            y.sum().backward()
        grads = [leaf.grad, *(p.grad for p in model.parameters() if p.grad is not None)]
        found["watched" if watched else "alone"] = [y.detach(), *grads]
    return {**found, "seen": dict(seen)}


class _Handing(nn.Module):
    """A model that changes in place what an identity handed on, and gives something odd beside it."""

    def __init__(self):
        super().__init__()
        self.norm, self.same, self.odd = nn.BatchNorm1d(3), nn.Identity(), _Odd()

    def forward(self, x):
        x = self.norm(x)
        self.same(x).mul_(2)
        self.odd(x)
        return x


class _Odd(nn.Module):
    """A layer whose output holds an object of its own; or that fails."""

    fails, thing = False, object()

    def forward(self, x):
        if self.fails:
            raise LookupError("forward")
        return self.thing, x


@probe
def recorded_by_the_way(student, x):
    """Return a model's output alone and watched, what was kept of an object, and of a failed call."""
    found = {"alone": _Handing()(x).detach()}
    model = _Handing()
    with student.recording(model, ["same", "odd"]) as seen:
        found["watched"] = model(x).detach()
        model.odd.fails = True
        with suppress(LookupError):
            model(x)
    found["kept"] = seen["odd"][0][0] is _Odd.thing
    return {**found, "outputs": [len(seen["same"]), len(seen["odd"])]}


class _Structured(nn.Module):
    def forward(self, x):
        half = x * 0.5
        parts = {"half": half, "pair": [x + 1, None], 7: "text", "deep": ({"x": half.double()},)}
        return half, parts, 3


@probe
def recorded_structure(student, x):
    """Return what was recorded of an output that is a tuple of many things, changed afterwards."""
    model = nn.Sequential(_Structured())
    with student.recording(model, ["0"]) as seen:
        result = model(x)
        tensors = [result[0], *result[1]["pair"][:1], result[1]["deep"][0]["x"]]
        for tensor in tensors:
            tensor.zero_()
    return seen["0"]


def _hook_count(model):
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return sum(len(getattr(m, kind)) for m in model.modules() for kind in kinds)


@probe
def recorded_ends(student, x):
    """Return what is left on the model after a `with` that ended well, and others that did not."""
    model, others = _Watched(), []
    model.stem.register_forward_hook(lambda *_: others.append("before"))
    found = {"before": _hook_count(model)}
    with student.recording(model, ["stem", "block"]) as seen:
        model.stem.register_forward_hook(lambda *_: others.append("during"))
        model(x)
    others.clear()
    model(x)
    found |= {"well": _hook_count(model) - 1, "others": list(others)}
    found["counts"] = [len(outputs) for outputs in seen.values()]
    try:
        with student.recording(model, ["act", "block"]) as seen:
            model(x)
            raise LookupError
    except LookupError:
        found["reaches the caller"] = True
    model(x)
    found |= {"error": _hook_count(model) - 1, "after an error": [len(o) for o in seen.values()]}
    for number, paths in enumerate(
        (["nowhere"], ["stem", "block.7"], ["act", "block.x.y", "stem"])
    ):
        try:
            with student.recording(model, paths):
                found[f"wrong {number}"] = "entered"
        except AttributeError:
            found[f"wrong {number}"] = _hook_count(model) - 1
        except Exception as error:
            found[f"wrong {number}"] = type(error).__name__
    return found


@probe
def recorded_nested(student, x):
    """Return the counts of two recorders, one in the other, on the same layers."""
    model = _Watched()
    with student.recording(model, ["stem", "act"]) as outer:
        model(x)
        with student.recording(model, ["act", "block"]) as inner:
            model(x)
        model(x)
    return [{path: len(outputs) for path, outputs in seen.items()} for seen in (outer, inner)]


@probe
def recorded_alive(student, x):
    """Say whether the model lives on when only the record is kept."""
    model = _Watched()
    with student.recording(model, ["", "stem", "block"]) as seen:
        model(x)
    alive = weakref.ref(model)
    del model
    gc.collect()
    return {"alive": alive() is not None, "root": len(seen[""])}
