"""State and gradients in shards: `zero_ledger`, `ZeroOptimizer` and `scaled_step`."""

import torch
from torch import nn

from grader import on_ranks, probe, watch_collectives

from .waiting import SECONDS

ZERO_MAKERS = {
    "adam": lambda tensors: torch.optim.Adam(tensors, lr=0.1),
    "momentum": lambda tensors: torch.optim.SGD(tensors, lr=0.1, momentum=0.9),
    "decay": lambda tensors: torch.optim.AdamW(tensors, lr=0.1, weight_decay=0.3),
}


@probe
def zero_steps(student, values, gradients, kind, ranks):
    """Return per rank the parameters after each step, what is kept, and what was said."""

    def body(rank):
        # in an order of the rank's own: addresses are no order that ranks agree on, and in forks they would be
        order = range(len(values)) if rank % 2 else reversed(range(len(values)))
        made_as = {number: nn.Parameter(values[number]) for number in order}  # a clone has no gaps
        params = [made_as[number] for number in range(len(values))]
        storages = [param.data_ptr() for param in params]
        made, kept = [], [0]

        def make(tensors):
            made.append(ZERO_MAKERS[kind](tensors))
            made[-1].register_step_post_hook(count)
            return made[-1]

        def count(*_):  # right after a step: what is thrown away later was there, too
            states = [state for one in made for state in one.state.values()]
            names = {"exp_avg", "momentum_buffer"}
            kept.append(
                sum(state[name].numel() for state in states for name in names & state.keys())
            )

        optimizer = student.ZeroOptimizer(iter(params), make)
        after, said = [], []
        for grads in gradients:
            for param, grad in zip(params, grads, strict=True):
                param.grad = None if grad is None else grad.clone()
            with watch_collectives() as seen:
                optimizer.step()
            after.append([param.detach().clone() for param in params])
            said.append(sum(size for _, size in seen.events))
        optimizer.zero_grad()
        return {
            "params": after,
            "kept": max(kept),
            "said": said,
            "in place": [param.data_ptr() for param in params] == storages,
            "cleared": [param.grad is None for param in params],
        }

    return on_ranks(ranks, body, seconds=SECONDS)


@probe
def ledgers(student, cases):
    """Return the ledger of each (sizes, ranks, stage)."""
    return [student.zero_ledger(list(sizes), ranks, stage) for sizes, ranks, stage in cases]


@probe
def scaled_steps(student, shards, scale, max_norm):
    """Make one step of SGD, learning rate 1, from zeros; shards: per rank, scaled gradients."""

    def body(rank):
        params = []
        for grad in shards[rank]:
            dtype, shape = (torch.float32, (2,)) if grad is None else (grad.dtype, grad.shape)
            params.append(nn.Parameter(torch.zeros(shape, dtype=dtype)))
            params[-1].grad = grad
        steps = []
        # a rank without parameters has an optimizer of something that has no gradient
        optimizer = torch.optim.SGD(params or [nn.Parameter(torch.zeros(1))], lr=1.0)
        optimizer.register_step_post_hook(lambda *_: steps.append(1))
        with watch_collectives() as seen:
            norm = student.scaled_step(params, optimizer, scale, max_norm)
        return {
            "norm": norm,
            "params": [param.detach() for param in params],
            "steps": len(steps),
            "cleared": [param.grad is None for param in params],
            "said": [size for _, size in seen.events],
        }

    return on_ranks(len(shards), body, seconds=SECONDS)
