"""One probe for each shape of thing that an exercise can be about."""

import gc
import os
import weakref
from itertools import count

import torch
from torch import nn
from torch.utils.data import DataLoader

from grader import fresh_dynamo, on_ranks, probe


@probe
def transposed(student, x):
    """Return what `transposed` makes of `x` (rows, columns)."""
    return student.transposed(x)


@probe(in_place=("x", "whole"))
def clamped(student, whole, x, low):
    """Clamp `x`, a view of `whole`, and say whether `x` itself came back."""
    result = student.clamp_in_place(x, low)
    return {"result": result, "is x": result is x}


@probe
def recorded(student, x):
    """Record two calls of a small model, one call that fails, and what is left behind."""
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 2)))
    with student.ActivationRecorder(model) as seen:
        model(x)
        inside = hooks(model)
        expected = model(x).detach()
    names = list(seen)
    outputs = dict(seen)
    left_after_body = hooks(model)
    model(x + 1)
    try:
        with student.ActivationRecorder(model):
            raise LookupError
    except LookupError:
        pass
    left_after_error = hooks(model)
    alive = weakref.ref(model)
    del model
    gc.collect()
    return {
        "names": names,
        "outputs": outputs,
        "expected": expected,
        "hooks": {"inside": inside, "after": left_after_body, "after an error": left_after_error},
        "frozen": list(seen) == names and all(seen[name] is outputs[name] for name in names),
        "model is alive": alive() is not None,
    }


def hooks(model):
    """Return how many forward hooks the model's modules have."""
    return sum(len(module._forward_hooks) for module in model.modules())


@probe
def grad_modes(student, before):
    """Return grad mode inside and after a `with`, after one that raised, and of a result."""
    torch.set_grad_enabled(before)
    x = torch.ones(2, requires_grad=True)
    with student.grad_off():
        inside, y = torch.is_grad_enabled(), x * 2
    after = torch.is_grad_enabled()
    torch.set_grad_enabled(before)
    swallowed = True
    try:
        with student.grad_off():
            raise LookupError
    except LookupError:
        swallowed = False
    return {
        "inside": inside,
        "after": after,
        "after an error": torch.is_grad_enabled(),
        "swallowed": swallowed,
        "y": y,
    }


@probe
def steps(student, x):
    """Take three results from an endless source; note grad mode and what was pulled, each time."""
    pulled, closed = [], []

    def source():
        try:
            for number in count():
                pulled.append(number)
                yield x + number
        finally:
            closed.append(True)

    w = torch.ones((), requires_grad=True)
    generator = student.mapped_without_grad(lambda item: item * w, source())
    notes = [("made", torch.is_grad_enabled(), len(pulled))]
    results = []
    for _ in range(3):
        results.append(next(generator))
        notes.append(("step", torch.is_grad_enabled(), len(pulled)))
    generator.close()
    return {"results": results, "notes": notes, "grad mode at the end": torch.is_grad_enabled()}


@probe
def loaded(student, n, workers):
    """Return what a DataLoader gives, in order, and whether workers did the work."""
    here = os.getpid()
    pids = []

    def collate(samples):
        return torch.stack(samples), os.getpid()

    loader = DataLoader(
        student.Sharded(n),
        batch_size=2,
        num_workers=workers,
        collate_fn=collate,
        multiprocessing_context="fork" if workers else None,
        timeout=10 if workers else 0,
    )
    batches = []
    for batch, pid in loader:
        batches.append(batch)
        pids.append(pid)
    return {"batches": batches, "processes": len(set(pids)), "in the main process": here in pids}


@probe
def compiled(student, x):
    """Compile two functions, one with a graph break, with one backend each."""

    def straight(x):
        return (x.sin() + 1).relu()

    def broken(x):
        y = torch.sin(x) * 2
        torch._dynamo.graph_break()
        return y.cos()

    found = {}
    for function in (straight, broken):
        with fresh_dynamo():
            backend = student.OpLister()
            run = torch.compile(function, backend=backend)
            results = [run(x), run(x + 1)]
        found[function.__name__] = {"graphs": backend.graphs, "results": results}
    return found


@probe
def averaged(student, parts):
    """Return each rank's average, and its own part afterwards. `parts` has one tensor per rank."""

    def body(rank):
        mean = student.average(parts[rank])
        return mean, parts[rank]

    return on_ranks(len(parts), body, seconds=3)
