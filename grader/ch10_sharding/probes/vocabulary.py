"""Losses of words and of samples that ranks share out: `vocab_loss`, `evaluate`."""

import torch

from grader import on_ranks, probe, watch_collectives

from .layers import group_of
from .waiting import SECONDS


@probe
def vocab_losses(student, hidden, tables, targets, scale, ranks, members):
    """Return by member the loss, its gradients after `backward` of `scale` times it, and what was said.

    tables: by member, its rows of the table
    """
    words = sum(len(table) for table in tables)

    def body(rank):
        inside, group = group_of(rank, ranks, members)
        if not inside:
            return None
        x = hidden.clone().requires_grad_()
        table = tables[members.index(rank)].clone().requires_grad_()
        with watch_collectives() as forward:
            loss = student.vocab_loss(x, table, words, targets.clone(), *group)
        with watch_collectives() as backward:
            (loss * scale).backward()
        return {
            "loss": loss.detach(),
            "grads": {
                name: None if leaf.grad is None else leaf.grad.clone()
                for name, leaf in (("hidden", x), ("table", table))
            },
            "forward": list(forward.events),
            "backward": list(backward.events),
            "untouched": torch.equal(x.detach(), hidden),
        }

    found = on_ranks(ranks, body, seconds=SECONDS)
    return [found[member] for member in members]


@probe
def evaluated(student, cases, ranks, members):
    """Return by case and member what `evaluate` returned, and what was said.

    A case has by member its outputs and its lengths, and the number of samples.
    """

    def body(rank):
        inside, group = group_of(rank, ranks, members)
        if not inside:
            return None
        found = []
        for parts, total in cases:
            outputs, lengths = (tensor.clone() for tensor in parts[members.index(rank)])
            with watch_collectives() as seen:
                result = student.evaluate(outputs, lengths, total, *group)
            found.append({"result": result, "said": list(seen.events)})
        return found

    found = on_ranks(ranks, body, seconds=SECONDS)
    return [[found[member][number] for member in members] for number in range(len(cases))]
