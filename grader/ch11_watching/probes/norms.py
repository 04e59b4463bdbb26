"""The probes of `grad_norms`."""

import torch
from torch import nn

from grader import probe, watch_memory

from .contract import disturbed, nothing_new, own_random, seed_all, state_of
from .reads import watch_reads


def parameters_with(gradients):
    """Return a parameter for each gradient, or None for one without."""
    made = []
    for gradient in gradients:
        if gradient is None:
            made.append(nn.Parameter(torch.ones(3)))
        else:
            made.append(nn.Parameter(torch.ones_like(gradient)))
            made[-1].grad = gradient.clone()
    return made


@probe
def norms(student, groups, scale, max_norm):
    """Return what `grad_norms` says of gradients, by group."""
    made = {name: parameters_with(gradients) for name, gradients in groups.items()}
    return student.grad_norms(made, torch.tensor(scale), max_norm)


@probe
def norms_cost(student, groups, scale, max_norm):
    """Return the reads, and the elements of the largest new storage, as float64."""
    made = {name: parameters_with(gradients) for name, gradients in groups.items()}
    factor = torch.tensor(scale)
    with watch_reads() as reads, watch_memory() as memory:
        student.grad_norms(made, factor, max_norm)
    return {"reads": reads.names, "largest": memory.largest_bytes}


@probe
def norms_in_a_run(student):
    """Return what is not the same in a run whose gradients are looked at, and what is left."""
    left = []

    def run(watched):
        seed_all(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        groups = {"first": list(model[0].parameters()), "rest": list(model[1:].parameters())}
        with nothing_new(model, optimizer) as new:
            for _ in range(3):
                optimizer.zero_grad()
                loss = (model(torch.randn(16, 4)) - torch.randn(16, 1)).square().mean()
                scaler.scale(loss).backward()
                if watched:
                    student.grad_norms(groups, torch.tensor(scaler.get_scale()), 0.5)
                scaler.step(optimizer)
                scaler.update()
        left.extend(new)
        return state_of(model, optimizer)

    with own_random():
        return {"differs": disturbed(run), "left": left}
