"""A BatchNorm over all ranks: `SyncBatchNorm`."""

import torch

from grader import on_ranks, probe, watch_collectives

from .waiting import SECONDS


@probe
def synced_norm(student, shards, factors, weight, bias, momentum):
    """Train a SyncBatchNorm on ranks, then evaluate it; return results, gradients and traffic.

    shards, factors: per rank and step, inputs and what the outputs are multiplied by in the loss
    """

    def body(rank):
        norm = student.SyncBatchNorm(len(weight), momentum=momentum).to(weight.dtype)
        fresh = {name: tensor.detach().clone() for name, tensor in norm.state_dict().items()}
        kinds = [name for name, _ in norm.named_parameters()]
        with torch.no_grad():
            norm.weight.copy_(weight)
            norm.bias.copy_(bias)
        steps = []
        for x, factor in zip(shards[rank], factors[rank], strict=True):
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
                    "mean": norm.running_mean.clone(),
                    "var": norm.running_var.clone(),
                    "said": [sum(s for _, s in seen.events) for seen in (forward, backward)],
                }
            )
        usual = student.SyncBatchNorm(1)
        usual(torch.tensor([[8.0], [12.0]]))
        norm.eval()
        x = shards[rank][0].detach().requires_grad_()
        with watch_collectives() as seen:
            y = norm(x)
            (y * factors[rank][0]).sum().backward()
        evaluated = {"y": y.detach(), "x.grad": x.grad, "said": len(seen.events)}
        evaluated |= {"mean": norm.running_mean.clone(), "var": norm.running_var.clone()}
        return {
            "steps": steps,
            "evaluated": evaluated,
            "fresh": fresh,
            "parameters": kinds,
            "usual": round(float(usual.running_mean), 6),
        }

    return on_ranks(len(shards), body, seconds=SECONDS)
