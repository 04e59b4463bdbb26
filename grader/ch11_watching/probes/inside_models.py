"""The probes of `ActivationStats` and `dead_units`."""

import weakref

import torch
from torch import nn

from grader import probe, watch_memory

from .alive import Graphs
from .contract import disturbed, left_behind, nothing_new, own_random, seed_all, state_of
from .reads import watch_reads
from .small import MODELS, built


@probe
def stats(student, kind, weights, names, every, calls):
    """Return the report after calls (mode, batch): "train", "eval", or a module's name, called alone."""
    model = built(kind, weights)
    with student.ActivationStats(model, list(names), every) as watching:
        for mode, x in calls:
            if mode in ("train", "eval"):
                model.train(mode == "train")(x.clone())
            else:
                model.train().get_submodule(mode)(x.clone())
    return watching.report()


@probe
def stats_default(student, weights, batches):
    """Return two reports of a class that was made without `every`: within the `with`, and after it."""
    model = built("plain", weights)
    with student.ActivationStats(model, ["0"]) as watching:
        model(batches[0])
        first = watching.report()
        model(batches[1])
    model(batches[0])
    return [first, watching.report()]


@probe
def stats_cost(student):
    """Return the reads before and in `report()`, the bytes alive after 3 and 12 steps, the graphs."""
    with own_random():
        seed_all(0)
        model = MODELS["normed"]()
        graphs, alive = Graphs(), []
        with watch_memory() as memory:
            watching = student.ActivationStats(model, ["0", "2", "4"], 1)
            with watch_reads() as before, watching:
                for number in range(1, 13):
                    out = model(torch.ones(64, 4))
                    graphs.note(out)
                    del out
                    if number in (3, 12):
                        alive.append(memory.live_bytes if graphs.alive >= 0 else 0)
            left = graphs.alive
            with watch_reads() as after:
                watching.report()
    return {"before": before.names, "report": after.names, "alive": alive, "graphs": left}


class Stop(Exception):
    """What a loop raises within the `with`."""


@probe
def stats_in_a_run(student):
    """Return what is not the same in a run that is watched, what is left, and after an error."""
    left = []

    def run(watched):
        seed_all(0)
        model = MODELS["normed"]()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        with nothing_new(model, optimizer) as new:
            watching = student.ActivationStats(model, ["", "0", "2", "3"], 2) if watched else None
            if watching is not None:
                watching.__enter__()
            for _ in range(3):
                optimizer.zero_grad()
                model(torch.randn(16, 4)).square().mean().backward()
                optimizer.step()
            if watching is not None:
                watching.__exit__(None, None, None)
                watching.report()
        left.extend(new)
        return state_of(model, optimizer)

    with own_random():
        differs = disturbed(run)
    model = MODELS["plain"]()
    others = model[0].register_forward_hook(lambda module, inputs, output: None)
    went_on = False
    before = left_behind(model)
    try:
        with student.ActivationStats(model, ["0", "1"], 1):
            model(torch.ones(2, 4))
            raise Stop
    except Stop:
        went_on = True
    after = left_behind(model)
    others.remove()
    return {"differs": differs, "left": left, "before": before, "after": after, "went on": went_on}


def fires(weights, bias, kind="relu"):
    """Return a model of one layer with a nonlinearity; its units fire as weights and bias say."""
    layer = nn.Linear(weights.shape[1], weights.shape[0])
    with torch.no_grad():
        layer.weight.copy_(weights)
        layer.bias.copy_(bias)
    acts = {"relu": nn.ReLU(), "leaky": nn.LeakyReLU(0.1), "in place": nn.ReLU(inplace=True)}
    return nn.Sequential(layer, acts[kind], nn.Dropout(0.5))


class Over(nn.Module):
    """A layer over the last dimension of (batch, position, feature), or of images by channel."""

    def __init__(self, inner, images):
        super().__init__()
        self.inner, self.images = inner, images

    def forward(self, x):
        return self.inner(x.movedim(1, -1)).movedim(-1, 1) if self.images else self.inner(x)


@probe
def dead(student, weights, bias, kind, batches, images, channels):
    """Return the dead units of a layer on batches, walked once."""
    model = nn.Sequential(Over(fires(weights, bias, kind), images), nn.Identity())
    return student.dead_units(model.train(), dict(channels), (x.clone() for x in batches))


class Again(nn.Module):
    """Calls one ReLU for two tensors."""

    def __init__(self):
        super().__init__()
        self.act = nn.ReLU()

    def forward(self, pair):
        return self.act(pair[0]) + self.act(pair[1])


@probe
def dead_in_two_calls(student, pairs):
    """Return the dead units of a ReLU that a model calls twice for each batch."""
    return student.dead_units(Again(), {"act": -1}, iter(pairs))


def frozen():
    """Return a model in training mode, of which a batch norm and a dropout stay in eval mode."""
    model = nn.Sequential(
        nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.5), nn.BatchNorm1d(6)
    )
    model[1].eval()
    model[3].eval()
    return model


@probe
def dead_in_a_run(student):
    """Return what is not the same in a run that asks in between, and what is left."""
    left = []

    def run(watched):
        seed_all(0)
        model = frozen()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        batches = [torch.randn(16, 4) for _ in range(3)]
        with nothing_new(model, optimizer) as new:
            for x in batches:
                optimizer.zero_grad()
                model(x).square().mean().backward()
                if watched:
                    student.dead_units(model, {"2": 1, "3": 1}, iter(batches))
                optimizer.step()
        left.extend(new)
        return state_of(model, optimizer)

    with own_random():
        # a mode that is not put back is the reason for all that differs after it
        differs = sorted(disturbed(run), key=lambda name: "training mode" not in name)
    return {"differs": differs, "left": left}


@probe
def dead_after_an_error(student):
    """Return what an error of the model, and one of the batches, leave behind."""
    found = {}
    for where in ("model", "batches"):
        model = frozen()
        modes = [module.training for module in model.modules()]

        def batches(where=where):
            yield torch.ones(3, 4)
            if where == "batches":
                raise Stop
            yield torch.ones(3, 5)  # the layer takes four

        try:
            student.dead_units(model, {"2": 1}, batches())
            error = "none"
        except Exception as raised:
            error = type(raised).__name__
        found[where] = {
            "error": error,
            "modes": [module.training for module in model.modules()] == modes,
            "left": left_behind(model),
            "grad mode": torch.is_grad_enabled(),
        }
    return found


@probe
def dead_cost(student, count):
    """Return the reads of a call with many batches, and the batches that were alive at once."""
    model = frozen()
    alive, most = [], 0

    def batches():
        nonlocal most
        for _ in range(count):
            x = torch.ones(64, 4)
            alive.append(weakref.ref(x))
            most = max(most, sum(ref() is not None for ref in alive))
            yield x
            del x

    with watch_reads() as reads, watch_memory() as memory:
        student.dead_units(model, {"2": 1, "4": -1}, batches())
    return {"reads": reads.names, "batches": most, "peak": memory.peak_bytes}
