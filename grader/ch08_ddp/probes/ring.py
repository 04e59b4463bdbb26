"""Messages from rank to rank in a ring: `ring_all_reduce`."""

import torch

from grader import each, on_ranks, probe, watch_collectives
from grader.inside.dispatch import DispatchMode

from .replicas import same
from .waiting import SECONDS


class Addressed(DispatchMode):
    """Notes to which rank each message was sent, and its bytes."""

    def __init__(self):
        super().__init__()
        self.sent = []

    def before(self, operator, args, kwargs):
        if operator.name() == "c10d::send":
            self.sent.append((args[2], sum(tensor.nbytes for tensor in args[0])))


def is_new(result, x):
    """Say whether a result is another tensor than `x`, with memory of its own."""
    if not isinstance(result, torch.Tensor) or result is x:
        return False
    mine, theirs = (one.untyped_storage() for one in (result, x))
    return not x.numel() or mine.data_ptr() != theirs.data_ptr()


@probe
def ringed(student, cases):
    """Return, by rank and case, the sum, the messages sent and what became of `x`.

    `cases` has a list for each case: one tensor for each rank.
    """

    def body(rank):
        found = []
        for tensors in cases:
            x = tensors[rank]
            before = x.clone()
            with watch_collectives() as seen, Addressed() as messages:
                [result] = each(student.ring_all_reduce, [(x,)])
            found.append(
                {
                    "sum": result,
                    "untouched": same(x, before),
                    "new": is_new(result, x),
                    "others": sorted({name for name in seen.names if name not in ("send", "recv")}),
                    "sent": messages.sent,
                }
            )
        return found

    return on_ranks(len(cases[0]), body, seconds=SECONDS)
