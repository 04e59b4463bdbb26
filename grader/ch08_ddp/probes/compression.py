"""A communication hook in torch's DDP: `compress`."""

import os

from torch import nn

from grader import on_ranks, probe, watch_collectives

from .models import Weighted, gradients_of
from .waiting import SECONDS, signals


@probe
def compressed_steps(student, values, factors, ranks_meet):
    """Return per rank and step the gradients, the buckets, and what was said.

    factors: per rank and step, the gradient of each parameter. `ranks_meet`: rank 1 begins its
    last backward when rank 0 has all its gradients, or has fallen silent.
    """
    read, write = os.pipe()
    last = len(factors[0]) - 1

    def body(rank):
        model = Weighted(values)
        ddp = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=256 / 2**20)
        numbers = {parameter: number for number, parameter in enumerate(model.w)}
        buckets, step = [], 0

        def hook(state, bucket):
            buckets[-1].append([numbers[parameter] for parameter in bucket.parameters()])
            return student.compress(state, bucket)

        def computed(gradient):
            if step == last:
                os.write(write, b"!")

        ddp.register_comm_hook({}, hook)
        if rank == 0 and ranks_meet:
            for parameter in model.w:
                parameter.register_hook(computed)
        found, came = [], None
        for step, mine in enumerate(factors[rank]):  # `computed` reads it
            model.zero_grad()
            buckets.append([])
            loss = ddp(mine)
            if rank == 1 and ranks_meet and step == last:
                came = signals(read, len(values))
            with watch_collectives() as seen:
                loss.backward()
            found.append({"gradients": gradients_of(model), "said": sum(s for _, s in seen.events)})
        return {"steps": found, "buckets": buckets, "came": came}

    try:
        return on_ranks(len(factors), body, seconds=SECONDS)
    finally:
        os.close(read)
        os.close(write)
