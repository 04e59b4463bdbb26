"""Layers whose weights are shared out: `mlp` and `sequence_block`."""

import torch
import torch.distributed as dist

from grader import on_ranks, probe, watch_collectives, watch_saved

from .waiting import SECONDS


def group_of(rank, ranks, members):
    """Return whether a rank is a member, and the arguments that name the group: none for the world."""
    if len(members) == ranks:
        return True, ()
    group = dist.new_group(members)
    return rank in members, (group,)


def differentiated(call, tensors, factor):
    """Call with tensors that require grad; return output, gradients and what was said.

    The loss is the sum of the output times `factor`: the same on every rank.
    """
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in tensors.items()}
    with watch_collectives() as forward:
        out = call(*leaves.values())
    with watch_collectives() as backward:
        (out * factor).sum().backward()
    return {
        "out": out.detach(),
        "grads": {
            name: None if leaf.grad is None else leaf.grad.clone() for name, leaf in leaves.items()
        },
        "forward": list(forward.events),
        "backward": list(backward.events),
    }


@probe
def mlps(student, x, parts, factor, ranks, members):
    """Return by member the output of `mlp`, all gradients, what was said, and the output without grad.

    parts: by member, up, up_bias, down and down_bias
    """

    def body(rank):
        inside, group = group_of(rank, ranks, members)
        if not inside:
            return None
        mine = {"x": x, **parts[members.index(rank)]}
        found = differentiated(lambda *tensors: student.mlp(*tensors, *group), mine, factor)
        with torch.no_grad():
            found["without grad"] = student.mlp(*mine.values(), *group)
        found["untouched"] = torch.equal(mine["x"], x)
        return found

    found = on_ranks(ranks, body, seconds=SECONDS)
    return [found[member] for member in members]


@probe
def sequence_blocks(student, xs, parts, factors, ranks, members):
    """Return by member its rows of the output, all gradients, what was said, and the bytes saved.

    xs, factors: by member, its rows; parts: by member, norm_w, norm_b, up and down
    """
    rows = sum(len(x) for x in xs)

    def body(rank):
        inside, group = group_of(rank, ranks, members)
        if not inside:
            return None
        at = members.index(rank)

        def call(x, *weights):
            with watch_saved() as saved:
                out = student.sequence_block(x, rows, *weights, *group)
            kept.append(saved.bytes_without(*weights))
            return out

        kept = []
        found = differentiated(call, {"x": xs[at], **parts[at]}, factors[at])
        return {**found, "saved": kept[0]}

    found = on_ranks(ranks, body, seconds=SECONDS)
    return [found[member] for member in members]
