"""Probes of `cross_entropy`: its value, its derivatives, what its graph keeps."""

import gc

import torch

from grader import probe, watch_memory, watch_saved


@probe
def entropy_value(student, logits, target):
    """Return the loss as it is."""
    return student.cross_entropy(logits, target).detach()


@probe
def entropy_grads(student, logits, target, cotangent, direction):
    """Return the loss, its gradient for `cotangent`, and the gradients of that along `direction`."""
    z = logits.detach().requires_grad_()
    c = cotangent.clone().requires_grad_()
    loss = student.cross_entropy(z, target)
    (first,) = torch.autograd.grad(loss, z, c, create_graph=True)
    second = torch.autograd.grad(first, (z, c), direction, allow_unused=True)
    return {"loss": loss.detach(), "first": first.detach(), "second": list(second)}


@probe
def entropy_first(student, logits, target):
    """Return the gradient alone."""
    z = logits.detach().requires_grad_()
    student.cross_entropy(z, target).backward()
    return z.grad


@probe
def entropy_saved(student, logits, target):
    """Return how many bytes the graph keeps beside the inputs: saved, or alive by any other way."""
    z = logits.detach().requires_grad_()
    with watch_memory() as memory:
        loss = student.cross_entropy(z, target)
        gc.collect()
        alive = memory.live_bytes - loss.nbytes
    del loss
    with watch_saved() as saved:
        loss = student.cross_entropy(z, target)
    loss.backward()
    return {"bytes": max(saved.bytes_without(z, target), alive), "grad": z.grad}
