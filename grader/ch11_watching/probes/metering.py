"""The probes of `Meter`."""

import torch
import torch.nn.functional as F
from torch import nn

from grader import probe, watch_memory

from .alive import Graphs
from .contract import disturbed, nothing_new, own_random, seed_all, state_of
from .reads import watch_reads


@probe
def metered(student, parts, beta):
    """Return what meters say: `parts` has the updates of each; the first takes in the others."""
    meters = []
    for updates in parts:
        meter = student.Meter(beta)
        for values, mask in updates:
            batch = values.clone()
            meter.update(batch) if mask is None else meter.update(batch, mask)
            batch.zero_()  # what happens to values later does not matter
        meters.append(meter)
    first, *others = meters
    for other in others:
        first.merge(other)
    return {
        "value": first.value(),
        "again": first.value(),
        "others": [other.value() for other in others],
    }


@probe
def default_beta(student, updates):
    """Return what a meter says that was made without an argument."""
    meter = student.Meter()
    for values, _ in updates:
        meter.update(values)
    return meter.value()


@probe
def meter_reads(student, updates):
    """Return how many reads there were: by two meters' updates, their merge, and each `value()`."""
    one, other = student.Meter(0.9), student.Meter(0.9)
    with watch_reads() as in_updates:
        for values, mask in updates:
            one.update(values, mask)
            other.update(values)
    with watch_reads() as in_merge:
        one.merge(other)
    with watch_reads() as in_value:
        one.value()
    with watch_reads() as in_empty:
        student.Meter(0.9).value()
    return {
        "update": in_updates.names,
        "merge": in_merge.names,
        "value": in_value.names,
        "value of an empty meter": in_empty.names,
    }


@probe
def meter_keeps(student, few, many):
    """Return the bytes that are alive after few and after many batches, and the graphs."""
    graphs, alive = Graphs(), []
    with watch_memory() as memory:
        weight = torch.ones(4, requires_grad=True)
        meter = student.Meter(0.9)
        for number in range(1, many + 1):
            values = (torch.full((256, 4), float(number)) * weight).sum(1)
            graphs.note(values)
            meter.update(values, values > 3)
            del values
            if number in (few, many):
                alive.append(memory.live_bytes if graphs.alive >= 0 else 0)
        left = graphs.alive
        meter.value()
    return {"alive": alive, "graphs": left}


@probe
def meter_in_a_run(student):
    """Return what is not the same in a run whose losses a meter is shown, and what is left."""
    left = []

    def run(watched):
        seed_all(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        with nothing_new(model, optimizer) as new:
            meter = student.Meter(0.9) if watched else None
            for _ in range(3):
                x, y = torch.randn(16, 4), torch.randn(16, 1)
                optimizer.zero_grad()
                losses = F.mse_loss(model(x), y, reduction="none")
                mask = losses > 0.5
                if meter is not None:
                    meter.update(losses, mask)
                torch.where(mask, losses, 0.0).mean().backward()
                optimizer.step()
            if meter is not None:
                meter.value()
        left.extend(new)
        return state_of(model, optimizer)

    with own_random():
        return {"differs": disturbed(run), "left": left}
