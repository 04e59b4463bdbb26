"""What goes from rank to rank: round a ring, `ring_attention`, and through a pipeline, `run_stage`."""

import torch
import torch.distributed as dist

from grader import on_ranks, probe, watch_collectives, watch_flops, watch_memory

from .waiting import SECONDS


def zigzag(x, ranks, rank):
    """Return a rank's two chunks of a sequence (H, S, D), one behind the other."""
    chunks = x.chunk(2 * ranks, 1)
    return torch.cat([chunks[rank], chunks[2 * ranks - 1 - rank]], 1)


def laid_out(x, layout):
    """Return the same numbers in another layout: as they come, or with the sequence outermost."""
    return x.transpose(0, 1).contiguous().transpose(0, 1) if layout == "by token" else x


@probe
def attended(student, sequences, causal, members, layout):
    """Return, by rank, output and gradients of its part, and what forward and backward cost.

    sequences: per group q, k, v and what the output is multiplied by in the loss, each (H, S, D);
    members: per group its ranks
    """

    def body(rank):
        groups = [dist.new_group(ranks) for ranks in members]
        at = next(number for number, ranks in enumerate(members) if rank in ranks)
        n, me = len(members[at]), members[at].index(rank)
        q, k, v, factor = (laid_out(zigzag(x, n, me), layout) for x in sequences[at])
        inputs = [x.detach().requires_grad_() for x in (q, k, v)]
        before = [x.detach().clone() for x in inputs]
        with watch_collectives() as said, watch_memory() as memory, watch_flops() as flops:
            out = student.ring_attention(*inputs, groups[at], causal)
            left = memory.live_bytes
        with watch_collectives() as said_back, watch_memory() as back, watch_flops() as flops_back:
            (out * factor).sum().backward()
        return {
            "out": out.detach(),
            "grads": [x.grad for x in inputs],
            "untouched": all(
                torch.equal(a.detach(), b) for a, b in zip(inputs, before, strict=True)
            ),
            "left": left,
            "largest": [memory.largest_bytes, back.largest_bytes],
            "sent": [seen.bytes("send") for seen in (said, said_back)],
            "others": sorted({*said.names, *said_back.names} - {"send", "recv"}),
            "flops": [flops.total, flops_back.total],
        }

    return on_ranks(sum(map(len, members)), body, seconds=SECONDS)
