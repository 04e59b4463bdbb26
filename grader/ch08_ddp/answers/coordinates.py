# %% blocked: device_mesh
# A DeviceMesh has both: the coordinates and the groups. Here you build them.
def coordinates(shape):
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", shape)
    return tuple(mesh.get_coordinate()), [mesh.get_group(d) for d in range(len(shape))]


# %% mistake: only_own_groups
# Not every rank makes the same groups in the same order. `new_group` is called by all ranks for all groups,
# also for those that they are not in: who leaves one out, or begins with its own, keeps the others waiting.
def coordinates(shape):
    me, place, groups, step = dist.get_rank(), [], [], 1
    for size in reversed(shape):
        place.insert(0, me // step % size)
        first = me - place[0] * step
        groups.insert(0, dist.new_group([first + i * step for i in range(size)]))
        step *= size
    return tuple(place), groups


# %% mistake: first_runs_fastest
# You let the first coordinate run fastest. It is the last one, as in a contiguous tensor: rank 1 is next to
# rank 0 in the last dimension.
def coordinates(shape):
    def place(rank):
        found = []
        for size in shape:
            rank, coordinate = divmod(rank, size)
            found.append(coordinate)
        return tuple(found)

    me, groups = dist.get_rank(), []
    places = [place(rank) for rank in range(dist.get_world_size())]
    for d in range(len(shape)):
        lines = {}
        for rank, here in enumerate(places):
            lines.setdefault(here[:d] + here[d + 1 :], []).append(rank)
        for ranks in lines.values():
            group = dist.new_group(ranks)
            if me in ranks:
                groups.append(group)
    return places[me], groups


# %% mistake: same_instead_of_different
# Your group along a dimension has the ranks that share this coordinate. It must be those that share all the
# others: along a dimension means that only this coordinate changes.
def coordinates(shape):
    me, groups = dist.get_rank(), []
    places = [
        tuple(int(i) for i in torch.unravel_index(torch.tensor(rank), shape))
        for rank in range(dist.get_world_size())
    ]
    for d in range(len(shape)):
        lines = {}
        for rank, here in enumerate(places):
            lines.setdefault(here[d], []).append(rank)
        for ranks in lines.values():
            group = dist.new_group(ranks)
            if me in ranks:
                groups.append(group)
    return places[me], groups


# %% mistake: keeps_the_last
# You keep what the last `new_group` of the loop returned. For most ranks that is the placeholder for a group of
# others. Keep it only if this rank is among its ranks.
def coordinates(shape):
    me, groups = dist.get_rank(), []
    places = [
        tuple(int(i) for i in torch.unravel_index(torch.tensor(rank), shape))
        for rank in range(dist.get_world_size())
    ]
    for d in range(len(shape)):
        lines = {}
        for rank, here in enumerate(places):
            lines.setdefault(here[:d] + here[d + 1 :], []).append(rank)
        for ranks in lines.values():
            group = dist.new_group(ranks)
        groups.append(group)
    return places[me], groups


# %% mistake: neighbours_only
# You cut the ranks into runs of neighbours along every dimension. That is right along the last one only. Along
# another dimension the ranks of a group stand apart, by the product of the sizes after it.
def coordinates(shape):
    me, groups = dist.get_rank(), []
    world_size = dist.get_world_size()
    place = tuple(int(i) for i in torch.unravel_index(torch.tensor(me), shape))
    for size in shape:
        for first in range(0, world_size, size):
            ranks = list(range(first, first + size))
            group = dist.new_group(ranks)
            if me in ranks:
                groups.append(group)
    return place, groups


# %% mistake: leaves_out_ones
# You make no group along a dimension of size 1. There is one, with a single rank: who averages along it need not
# ask whether it is there.
def coordinates(shape):
    me, groups = dist.get_rank(), []
    ranks = torch.arange(dist.get_world_size()).reshape(shape)
    for d, size in enumerate(shape):
        if size == 1:
            continue
        for line in ranks.movedim(d, -1).reshape(-1, size).tolist():
            group = dist.new_group(line)
            if me in line:
                groups.append(group)
    place = [int(i) for i in (ranks == me).nonzero()[0]]
    return tuple(place), groups


# %% mistake: none_for_ones
# Your group along a dimension of size 1 is `None`. To a collective `None` means all ranks: whoever averages along
# this dimension would average over the world.
def coordinates(shape):
    me, groups = dist.get_rank(), []
    ranks = torch.arange(dist.get_world_size()).reshape(shape)
    for d, size in enumerate(shape):
        mine = None
        if size > 1:
            for line in ranks.movedim(d, -1).reshape(-1, size).tolist():
                group = dist.new_group(line)
                if me in line:
                    mine = group
        groups.append(mine)
    return tuple((ranks == me).nonzero()[0].tolist()), groups


# %% alternate: a_tensor_of_ranks
# A tensor of all ranks has the mesh's shape; its lines along a dimension are the groups.
def coordinates(shape):
    me, groups = dist.get_rank(), []
    ranks = torch.arange(dist.get_world_size()).reshape(shape)
    for d, size in enumerate(shape):
        for line in ranks.movedim(d, -1).reshape(-1, size).tolist():
            group = dist.new_group(line)
            if me in line:
                groups.append(group)
    return tuple(int(i) for i in (ranks == me).nonzero()[0]), groups


# %% alternate: members_only
# With `use_local_synchronization` a group is made by its members alone, dimension by dimension.
def coordinates(shape):
    me, place, groups, step = dist.get_rank(), [], [], 1
    for size in reversed(shape):
        place.insert(0, me // step % size)
        first = me - place[0] * step
        ranks = [first + i * step for i in range(size)]
        groups.insert(0, dist.new_group(ranks, use_local_synchronization=True))
        step *= size
    return tuple(place), groups
