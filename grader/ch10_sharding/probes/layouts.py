"""One tensor in several layouts: `redistribute`."""

import torch
import torch.distributed as dist

from grader import each, on_ranks, probe, watch_collectives

from .waiting import SECONDS


def apart_from(result, local):
    """Say whether a result is a tensor with memory of its own."""
    if not isinstance(result, torch.Tensor) or result is local:
        return False
    mine, theirs = (one.untyped_storage() for one in (result, local))
    return not theirs.nbytes() or mine.data_ptr() != theirs.data_ptr()


@probe
def redistributed(student, cases, ranks, members):
    """Return by member and case what it has afterwards, what it said, and what became of `local`.

    A case has what each member has, the shape, source and target. `members` of the world's `ranks`
    are the group; the others call nothing.
    """

    def body(rank):
        group = None if len(members) == ranks else dist.new_group(members)
        if rank not in members:
            return None
        found = []
        for parts, shape, source, target in cases:
            local = parts[members.index(rank)]
            before = local.clone()
            with watch_collectives() as seen:
                call = (local, tuple(shape), source, target)
                [result] = each(student.redistribute, [call if group is None else (*call, group)])
            found.append(
                {
                    "part": result,
                    "said": list(seen.events),
                    "new": apart_from(result, local),
                    "untouched": torch.equal(local, before),
                }
            )
        return found

    found = on_ranks(ranks, body, seconds=SECONDS)
    return [found[member] for member in members]
