"""A BatchNorm over all ranks: `SyncBatchNorm`."""

import torch

from grader import on_ranks, probe, watch_collectives

from .waiting import SECONDS


def copied(tensor):
    """Return a copy by itself: a buffer that carries a graph is judged by what it does later."""
    return tensor.detach().clone()


def prepared(norm, weight, bias):
    """Return the module with this dtype, weight and bias."""
    norm = norm.to(weight.dtype)
    with torch.no_grad():
        norm.weight.copy_(weight)
        norm.bias.copy_(bias)
    return norm


def trained(norm, inputs, factors):
    """Take a forward and a backward of each input; return results, gradients and traffic."""
    steps = []
    for x, factor in zip(inputs, factors, strict=True):
        norm.zero_grad()
        x.requires_grad_()
        with watch_collectives() as forward:
            y = norm(x)
        with watch_collectives() as backward:
            (y * factor).sum().backward()
        steps.append(
            {
                "y": y.detach(),
                "x.grad": x.grad,
                "weight.grad": norm.weight.grad.clone(),
                "bias.grad": norm.bias.grad.clone(),
                "mean": copied(norm.running_mean),
                "var": copied(norm.running_var),
                "said": [sum(s for _, s in seen.events) for seen in (forward, backward)],
            }
        )
    return steps


@probe
def synced_norm(student, shards, factors, weight, bias, momentum):
    """Train a SyncBatchNorm on ranks; return results, gradients and traffic.

    shards, factors: per rank and step, inputs and what the outputs are multiplied by in the loss
    """

    def body(rank):
        norm = student.SyncBatchNorm(len(weight), momentum=momentum)
        fresh = {name: copied(tensor) for name, tensor in norm.state_dict().items()}
        kinds = [name for name, _ in norm.named_parameters()]
        steps = trained(prepared(norm, weight, bias), shards[rank], factors[rank])
        usual = student.SyncBatchNorm(1)
        usual(torch.tensor([[8.0], [12.0]]))
        return {
            "steps": steps,
            "fresh": fresh,
            "parameters": kinds,
            "usual": round(float(copied(usual.running_mean)), 6),
        }

    return on_ranks(len(shards), body, seconds=SECONDS)


@probe
def evaluated_norm(student, shards, factors, weight, bias, momentum):
    """Train a SyncBatchNorm on ranks, and evaluate it on each rank's first input."""

    def body(rank):
        norm = prepared(student.SyncBatchNorm(len(weight), momentum=momentum), weight, bias)
        trained(norm, shards[rank], factors[rank])
        norm.eval()
        x = shards[rank][0].detach().requires_grad_()
        with watch_collectives() as seen:
            y = norm(x)
            (y * factors[rank][0]).sum().backward()
        return {
            "y": y.detach(),
            "x.grad": x.grad,
            "said": len(seen.events),
            "mean": copied(norm.running_mean),
            "var": copied(norm.running_var),
        }

    return on_ranks(len(shards), body, seconds=SECONDS)
