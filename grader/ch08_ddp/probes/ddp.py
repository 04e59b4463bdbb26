"""Data parallel training as a whole: `MiniDDP`."""

import os

import torch
from torch import nn

from grader import on_ranks, probe, watch_collectives

from .models import Normed, Weighted, gradients_of, state_of
from .waiting import SECONDS, signals


@probe
def ddp_steps(student, values, frozen, bucket_bytes, factors, modes):
    """Run backwards on ranks; return per rank each step's gradients and what was said in it.

    factors: per rank, per step, one tensor or None per parameter
    modes: per step a set of words: "clear" first, no_sync around "forward" or "backward", ...
    """

    def body(rank):
        model = Weighted(values, frozen)
        ddp = student.MiniDDP(model, bucket_bytes)
        found = []
        for mine, mode in zip(factors[rank], modes, strict=True):
            if "clear" in mode:
                model.zero_grad()
            with watch_collectives() as seen:
                order = list(range(len(values)))
                if "other order" in mode and rank == 1:
                    order.reverse()
                if "forward" in mode:
                    with ddp.no_sync():
                        with ddp.no_sync():
                            pass
                        loss = ddp(mine, order=order)
                elif "bypass" in mode:
                    loss = ddp.module(mine, order=order)
                else:
                    loss = ddp(mine, order=order)
                if "raise" in mode:
                    try:
                        with ddp.no_sync():
                            raise LookupError
                    except LookupError:
                        pass
                if "look" in mode:
                    with torch.no_grad():
                        ddp(mine, order=order)
                if "backward" in mode:
                    with ddp.no_sync():
                        loss.backward()
                else:
                    loss.backward()
            found.append({"gradients": gradients_of(model), "said": seen.events})
        return found

    return on_ranks(len(factors), body, seconds=SECONDS)


@probe
def ddp_overlap(student, values, bucket_bytes):
    """Return rank 0's order of gradients and messages, where rank 1 waits until rank 0 has all."""
    read, write = os.pipe()

    def body(rank):
        model = Weighted(values)
        ddp = student.MiniDDP(model, bucket_bytes)
        came = None

        def computed(number):
            seen.note(f"gradient {number}")
            if rank == 0:
                os.write(write, b"!")

        for number, parameter in enumerate(model.w):
            parameter.register_hook(lambda _, number=number: computed(number))
        factors = [torch.full_like(v, rank + 1.0) for v in values]
        with watch_collectives() as seen:
            loss = ddp(factors)
            if rank == 1:
                came = signals(read, len(values))
            loss.backward()
        return {"came": came, "said": seen.events, "gradients": gradients_of(model)}

    try:
        return on_ranks(2, body, seconds=SECONDS)
    finally:
        os.close(read)
        os.close(write)


@probe
def ddp_large(student, elements):
    """Return the least and the greatest gradient of one large parameter on each rank."""

    def body(rank):
        model = Weighted([torch.zeros(elements)])
        student.MiniDDP(model, 1 << 20)([torch.tensor(rank + 1.0)]).backward()
        return [float(bound) for bound in model.w[0].grad.aminmax()]

    return on_ranks(2, body, seconds=SECONDS)


@probe
def ddp_start(student, values, by_columns):
    """Return each rank's state once the module is wrapped, and whether its tensors are the same.

    by_columns: the ranks on which one parameter is stored by columns
    """

    def body(rank):
        model = Normed(values[rank])
        odd = values[rank][0][:, 1::2]
        model.odd = nn.Parameter(odd.t().contiguous().t() if rank in by_columns else odd)
        before = [*model.parameters(), *model.buffers()]
        ddp = student.MiniDDP(model, 1 << 20)
        after = [*model.parameters(), *model.buffers()]
        return {
            "state": state_of(model),
            "same tensors": [a is b for a, b in zip(before, after, strict=True)],
            "child": ddp.module is model,
            "output": ddp.eval()(values[0][0]).detach(),
            "expected": model.eval()(values[0][0]).detach(),
        }

    return on_ranks(len(values), body, seconds=SECONDS)


@probe
def ddp_trained(student, values, batches, bucket_bytes):
    """Return each rank's states after each step of SGD with momentum. batches: per rank, per step."""

    def body(rank):
        model = Normed(values)
        ddp = student.MiniDDP(model, bucket_bytes)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
        states = []
        for x in batches[rank]:
            optimizer.zero_grad()
            ddp(x).square().mean().backward()
            optimizer.step()
            states.append(state_of(model))
        return states

    return on_ranks(len(batches), body, seconds=SECONDS)


@probe
def ddp_buffers(student, values):
    """Return what was said, and each rank's running mean, around forwards of four kinds."""

    def body(rank):
        model = Normed(values[0])
        ddp = student.MiniDDP(model, 1 << 20)
        found = {}

        def forward(name):
            model.norm.running_mean.fill_(rank)
            with watch_collectives() as seen:
                result = ddp(values[0][0])
            found[name] = {
                "said": seen.count("broadcast", "all_reduce", "all_gather"),
                "mean": model.norm.running_mean.clone(),
            }
            return result

        ddp.eval()
        forward("averaged").sum().backward()
        with torch.no_grad():
            forward("no grad")
        with ddp.no_sync():
            forward("no_sync").sum().backward()
        forward("averaged again").sum().backward()
        return found

    return on_ranks(2, body, seconds=SECONDS)
