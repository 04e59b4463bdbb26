"""Groups of ranks in a mesh: `coordinates`."""

import torch
import torch.distributed as dist

from grader import on_ranks, probe

from .waiting import SECONDS


def members_of(group):
    """Return a group's ranks. None stays None, though every call takes it for the world."""
    return None if group is None else dist.get_process_group_ranks(group)


@probe
def placed(student, world_size, shapes):
    """Return, by rank, the coordinates in each mesh, and each group's members, rank and sum."""

    def body(rank):
        found = []
        for shape in shapes:
            coordinate, groups = student.coordinates(shape)
            sums = []
            for group in groups:
                one = torch.zeros(world_size, dtype=torch.int64)
                one[rank] = 1
                dist.all_reduce(one, group=group)
                sums.append(one.nonzero().flatten().tolist())
            found.append(
                {
                    "coordinate": coordinate,
                    "members": [members_of(group) for group in groups],
                    "rank in group": [dist.get_rank(group) for group in groups],
                    "reached": sums,
                }
            )
        return found

    return on_ranks(world_size, body, seconds=SECONDS)
