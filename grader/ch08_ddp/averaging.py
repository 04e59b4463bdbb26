"""What gradients, buckets and states MiniDDP must give: worked out in one process, without ranks."""

from collections.abc import Sequence

import torch
from torch import nn

from grader.ch08_ddp.probes.models import Normed, Weighted, state_of


def mean_gradients(
    values: list[torch.Tensor],
    frozen: list[int],
    factors: list[list[list[torch.Tensor | None]]],
    modes: list[set[str]],
) -> list[list[list[torch.Tensor | None]]]:
    """Return per rank and step what each parameter's `.grad` must be after it."""
    ranks = len(factors)
    models = [Weighted(values, frozen) for _ in range(ranks)]
    found: list[list[list[torch.Tensor | None]]] = [[] for _ in range(ranks)]
    for step, mode in enumerate(modes):
        for model, mine in zip(models, factors, strict=True):
            if "clear" in mode:
                model.zero_grad()
            model(mine[step]).backward()
        if not mode & {"forward", "bypass"}:
            _average(models)
        for model, results in zip(models, found, strict=True):
            results.append([None if p.grad is None else p.grad.clone() for p in model.parameters()])
    return found


def _average(models: Sequence[nn.Module]) -> None:
    for copies in zip(*(model.parameters() for model in models), strict=True):
        grads = [p.grad for p in copies if p.grad is not None]
        if grads:
            mean = sum(grads) / len(models)
            for p in copies:
                p.grad = mean.clone()


def buckets_of(values: list[torch.Tensor], bucket_bytes: int) -> list[list[int]]:
    """Return lists of the parameters' numbers, bucket by bucket."""
    buckets: list[list[int]] = []
    size = 0
    for number in reversed(range(len(values))):
        value = values[number]
        fits = bool(buckets) and size + value.nbytes <= bucket_bytes
        if not (fits and values[buckets[-1][-1]].dtype == value.dtype):
            buckets.append([])
            size = 0
        buckets[-1].append(number)
        size += value.nbytes
    return buckets


def trained(
    values: list[torch.Tensor], batches: list[list[torch.Tensor]]
) -> list[list[dict[str, torch.Tensor]]]:
    """Return each rank's states after each step, computed with all copies in this process."""
    models = [Normed(values) for _ in batches]
    makers = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in models]
    states: list[list[dict[str, torch.Tensor]]] = [[] for _ in batches]
    for step in range(len(batches[0])):
        for model, maker in zip(models, makers, strict=True):
            for buffer, first in zip(model.buffers(), models[0].buffers(), strict=True):
                buffer.copy_(first)
            maker.zero_grad()
        for model, mine in zip(models, batches, strict=True):
            model(mine[step]).square().mean().backward()
        _average(models)
        for model, maker, results in zip(models, makers, states, strict=True):
            maker.step()
            results.append(state_of(model))
    return states
