"""Probes of a pipeline: a message between stages, and stages that follow a plan."""

import os

import torch

from grader import on_ranks, probe, wait_for, watch_collectives, watch_memory

LATE = 0.5
"""Seconds that a rank waits for the sign that another has sent, and comes late. It takes 10 ms."""

STAGE_SECONDS = 2.0
"""Longest life of a pipeline's ranks, as `SECONDS`: most of what goes wrong in one is waiting for ever."""


@probe
def message_sent(student, x, weight, factor):
    """Send `x * weight` to rank 1, where the loss is the sum of it times `factor`; both come late.

    Return by rank what was sent and received, the gradients, and what was said.
    """
    pipes = [os.pipe() for _ in range(2)]

    def body(rank):
        with watch_collectives() as seen:
            if rank == 0:
                leaf = weight.clone().requires_grad_()
                phony = student.send(x * leaf, 1)
                os.write(pipes[0][1], b"!")
                wait_for(pipes[1][0], LATE)
                phony.sum().backward()
                found = {"phony": list(phony.shape), "grad": leaf.grad}
            else:
                wait_for(pipes[0][0], LATE)
                got = student.receive(x.shape, 0)
                found = {"got": got.detach().clone(), "requires grad": got.requires_grad}
                (got * factor).sum().backward()
                os.write(pipes[1][1], b"!")
        return {**found, "said": list(seen.events)}

    try:
        return on_ranks(2, body, seconds=STAGE_SECONDS)
    finally:
        for descriptor in sum(pipes, ()):
            os.close(descriptor)


@probe
def stages_run(student, weights, micro_batches, targets, plans, by_column):
    """Return by rank what `run_stage` returned, the gradients, what was said and done, and what was held.

    weights: by rank `up` (features, hidden) and `down` (hidden, features). A rank begins when the one before
    it has sent something. Held is the number of micro-batches whose hidden features are alive after a forward.
    """
    pipes = [os.pipe() for _ in weights]

    def body(rank):
        up, down = (weight.clone().requires_grad_() for weight in weights[rank])
        up.grad, down.grad = torch.zeros_like(up), torch.zeros_like(down)
        hidden_bytes = len(micro_batches[0]) * len(down) * down.itemsize
        done, held = [], []
        order = [number for kind, number in plans[rank] if kind == "F"]

        def stage(x):
            number = order[min(len(held), len(order) - 1)]
            y = (down.T @ (up.T @ x.T).tanh()).T if by_column else (x @ up).tanh() @ down
            y.register_hook(lambda grad: done.append(("B", number)))
            done.append(("F", number))
            held.append(memory.live_bytes // hidden_bytes)
            if len(held) == 2:
                os.write(pipes[rank][1], b"!")
            return y

        def loss(y, number):
            return (y - targets[number]).square().sum()

        if rank:
            wait_for(pipes[rank - 1][0], LATE)
        with watch_memory() as memory, watch_collectives() as seen:
            result = student.run_stage(stage, list(plans[rank]), list(micro_batches), loss)
        return {
            "result": result,
            "grads": {"up": up.grad, "down": down.grad},
            "done": done,
            "held": max(held, default=0),
            "said": list(seen.events),
        }

    try:
        return on_ranks(len(weights), body, seconds=STAGE_SECONDS)
    finally:
        for descriptor in sum(pipes, ()):
            os.close(descriptor)
