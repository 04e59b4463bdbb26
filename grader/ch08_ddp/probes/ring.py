"""Messages from rank to rank in a ring: `ring_all_reduce`."""

from torch.utils._python_dispatch import TorchDispatchMode

from grader import each, on_ranks, probe, watch_collectives

from .replicas import same
from .waiting import SECONDS


class Addressed(TorchDispatchMode):
    """Notes to which rank each message was sent, and its bytes."""

    def __init__(self):
        super().__init__()
        self.sent = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.name() == "c10d::send":
            self.sent.append((args[2], sum(tensor.nbytes for tensor in args[0])))
        return func(*args, **(kwargs or {}))


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
                    "others": sorted({name for name in seen.names if name not in ("send", "recv")}),
                    "sent": messages.sent,
                }
            )
        return found

    return on_ranks(len(cases[0]), body, seconds=SECONDS)
