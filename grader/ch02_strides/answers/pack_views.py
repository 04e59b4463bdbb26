# %% mistake: whole_storages
# You kept each storage whole. All is right when it is unpacked, and a slice of ten numbers still
# brings along all that it was cut from. That is what `torch.save` does by itself.
def pack_views(tensors):
    buffers, layouts, seen = [], [], {}
    for x in tensors:
        home = x.untyped_storage()
        key = home._cdata
        if key not in seen:
            seen[key] = len(buffers)
            buffers.append(torch.empty(0, dtype=torch.uint8).set_(home))
        layout = (seen[key], x.dtype, tuple(x.shape), x.stride(), x.storage_offset())
        layouts.append(layout)
    return buffers, layouts


# %% mistake: clones
# You gave each tensor a buffer of its own. The file is small and the sharing is gone: a write through
# one of two tied tensors no longer reaches the other, and what they shared is stored twice.
def pack_views(tensors):
    buffers, layouts = [], []
    for x in tensors:
        x = x.clone(memory_format=torch.contiguous_format)
        layouts.append((len(buffers), x.dtype, tuple(x.shape), x.stride(), 0))
        buffers.append(x.view(-1).view(torch.uint8))
    return buffers, layouts


# %% mistake: one_group_per_storage
# You put all tensors of a storage into one buffer. Its bytes from the first to the last may hold
# much that no tensor reaches: two rows at both ends of a matrix bring along all rows between them.
def pack_views(tensors):
    group = list(range(len(tensors)))
    for (i, j), common in alias_graph(tensors).items():
        if common >= 0:
            group = [group[i] if name == group[j] else name for name in group]
    buffers, layouts = [], [None] * len(tensors)
    for name in dict.fromkeys(group):
        members = [k for k in range(len(tensors)) if group[k] == name]
        x = tensors[members[0]]
        if len(members) == 1 and not overlaps(tuple(x.shape), x.stride()):
            x = x.clone(memory_format=torch.contiguous_format)
            layouts[name] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), 0)
            buffers.append(x.view(-1).view(torch.uint8))
            continue
        starts, ends = [], []
        for x in [tensors[k] for k in members]:
            last = sum((n - 1) * s for n, s in zip(x.shape, x.stride()))
            starts.append(x.storage_offset() * x.itemsize)
            ends.append((x.storage_offset() + last + 1) * x.itemsize)
        widest = max(tensors[k].itemsize for k in members)
        start = min(starts) // widest * widest
        for k in members:
            x = tensors[k]
            offset = x.storage_offset() - start // x.itemsize
            layouts[k] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), offset)
        memory = torch.empty(0, dtype=torch.uint8).set_(x.untyped_storage())
        buffers.append(memory[start : max(ends)].clone())
    return buffers, layouts


# %% mistake: contiguous_for_clone
# A slice of rows is contiguous, so that `contiguous()` returned it as it is, with its whole storage
# behind it. What you save must be a copy of its own.
def pack_views(tensors):
    group = list(range(len(tensors)))
    for (i, j), common in alias_graph(tensors).items():
        if common:
            group = [group[i] if name == group[j] else name for name in group]
    buffers, layouts = [], [None] * len(tensors)
    for name in dict.fromkeys(group):
        members = [k for k in range(len(tensors)) if group[k] == name]
        x = tensors[members[0]]
        if len(members) == 1 and not overlaps(tuple(x.shape), x.stride()):
            x = x.contiguous()
            layouts[name] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), 0)
            memory = torch.empty(0, dtype=torch.uint8).set_(x.untyped_storage())
            layouts[name] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), x.storage_offset())
            buffers.append(memory)
            continue
        starts, ends = [], []
        for x in [tensors[k] for k in members]:
            last = sum((n - 1) * s for n, s in zip(x.shape, x.stride()))
            starts.append(x.storage_offset() * x.itemsize)
            ends.append((x.storage_offset() + last + 1) * x.itemsize)
        widest = max(tensors[k].itemsize for k in members)
        start = min(starts) // widest * widest
        for k in members:
            x = tensors[k]
            offset = x.storage_offset() - start // x.itemsize
            layouts[k] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), offset)
        memory = torch.empty(0, dtype=torch.uint8).set_(x.untyped_storage())
        buffers.append(memory[start : max(ends)].clone())
    return buffers, layouts


# %% mistake: gaps_kept
# You packed tensors that meet no other from their first byte to their last. With gaps between the
# elements, such as in a column, that stores what nobody asked for. Make them row-major.
def pack_views(tensors):
    group = list(range(len(tensors)))
    for (i, j), common in alias_graph(tensors).items():
        if common:
            group = [group[i] if name == group[j] else name for name in group]
    buffers, layouts = [], [None] * len(tensors)
    for name in dict.fromkeys(group):
        members = [k for k in range(len(tensors)) if group[k] == name]
        x = tensors[members[0]]
        if x.numel() == 0:
            x = x.clone(memory_format=torch.contiguous_format)
            layouts[name] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), 0)
            buffers.append(x.view(-1).view(torch.uint8))
            continue
        starts, ends = [], []
        for x in [tensors[k] for k in members]:
            last = sum((n - 1) * s for n, s in zip(x.shape, x.stride()))
            starts.append(x.storage_offset() * x.itemsize)
            ends.append((x.storage_offset() + last + 1) * x.itemsize)
        widest = max(tensors[k].itemsize for k in members)
        start = min(starts) // widest * widest
        for k in members:
            x = tensors[k]
            offset = x.storage_offset() - start // x.itemsize
            layouts[k] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), offset)
        memory = torch.empty(0, dtype=torch.uint8).set_(x.untyped_storage())
        buffers.append(memory[start : max(ends)].clone())
    return buffers, layouts


# %% mistake: expanded_written_out
# You wrote out a tensor that overlaps itself. Expanded from nine numbers to 54 it takes six times the
# bytes, and its indices no longer share their cells.
def pack_views(tensors):
    group = list(range(len(tensors)))
    for (i, j), common in alias_graph(tensors).items():
        if common:
            group = [group[i] if name == group[j] else name for name in group]
    buffers, layouts = [], [None] * len(tensors)
    for name in dict.fromkeys(group):
        members = [k for k in range(len(tensors)) if group[k] == name]
        x = tensors[members[0]]
        if len(members) == 1:
            x = x.clone(memory_format=torch.contiguous_format)
            layouts[name] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), 0)
            buffers.append(x.view(-1).view(torch.uint8))
            continue
        starts, ends = [], []
        for x in [tensors[k] for k in members]:
            last = sum((n - 1) * s for n, s in zip(x.shape, x.stride()))
            starts.append(x.storage_offset() * x.itemsize)
            ends.append((x.storage_offset() + last + 1) * x.itemsize)
        widest = max(tensors[k].itemsize for k in members)
        start = min(starts) // widest * widest
        for k in members:
            x = tensors[k]
            offset = x.storage_offset() - start // x.itemsize
            layouts[k] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), offset)
        memory = torch.empty(0, dtype=torch.uint8).set_(x.untyped_storage())
        buffers.append(memory[start : max(ends)].clone())
    return buffers, layouts


# %% mistake: direct_neighbours
# You put a tensor together with those that it meets itself. Links count as well: where `a` meets `b`
# and `b` meets `c`, all three are one group, in whatever order they come.
def pack_views(tensors):
    group = list(range(len(tensors)))
    for (i, j), common in alias_graph(tensors).items():
        if common:
            group[j] = group[i]
    buffers, layouts = [], [None] * len(tensors)
    for name in dict.fromkeys(group):
        members = [k for k in range(len(tensors)) if group[k] == name]
        x = tensors[members[0]]
        if len(members) == 1 and not overlaps(tuple(x.shape), x.stride()):
            x = x.clone(memory_format=torch.contiguous_format)
            layouts[name] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), 0)
            buffers.append(x.view(-1).view(torch.uint8))
            continue
        starts, ends = [], []
        for x in [tensors[k] for k in members]:
            last = sum((n - 1) * s for n, s in zip(x.shape, x.stride()))
            starts.append(x.storage_offset() * x.itemsize)
            ends.append((x.storage_offset() + last + 1) * x.itemsize)
        widest = max(tensors[k].itemsize for k in members)
        start = min(starts) // widest * widest
        for k in members:
            x = tensors[k]
            offset = x.storage_offset() - start // x.itemsize
            layouts[k] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), offset)
        memory = torch.empty(0, dtype=torch.uint8).set_(x.untyped_storage())
        buffers.append(memory[start : max(ends)].clone())
    return buffers, layouts


# %% mistake: elements_for_bytes
# You cut out the group counting elements of its first tensor. With several dtypes in a group only
# bytes are common to all: multiply offsets and strides by `element_size()`.
def pack_views(tensors):
    group = list(range(len(tensors)))
    for (i, j), common in alias_graph(tensors).items():
        if common:
            group = [group[i] if name == group[j] else name for name in group]
    buffers, layouts = [], [None] * len(tensors)
    for name in dict.fromkeys(group):
        members = [k for k in range(len(tensors)) if group[k] == name]
        x = tensors[members[0]]
        if len(members) == 1 and not overlaps(tuple(x.shape), x.stride()):
            x = x.clone(memory_format=torch.contiguous_format)
            layouts[name] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), 0)
            buffers.append(x.view(-1).view(torch.uint8))
            continue
        starts, ends = [], []
        for x in [tensors[k] for k in members]:
            last = sum((n - 1) * s for n, s in zip(x.shape, x.stride()))
            width = tensors[members[0]].itemsize
            starts.append(x.storage_offset() * width)
            ends.append((x.storage_offset() + last + 1) * width)
        widest = max(tensors[k].itemsize for k in members)
        start = min(starts) // widest * widest
        for k in members:
            x = tensors[k]
            offset = x.storage_offset() - start // x.itemsize
            layouts[k] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), offset)
        memory = torch.empty(0, dtype=torch.uint8).set_(x.untyped_storage())
        buffers.append(memory[start : max(ends)].clone())
    return buffers, layouts


# %% mistake: not_aligned
# Your buffer begins at the first byte that is reached. If that lies within an element of the group's
# widest dtype, no whole number of elements leads to where that tensor begins. Move the start back.
def pack_views(tensors):
    group = list(range(len(tensors)))
    for (i, j), common in alias_graph(tensors).items():
        if common:
            group = [group[i] if name == group[j] else name for name in group]
    buffers, layouts = [], [None] * len(tensors)
    for name in dict.fromkeys(group):
        members = [k for k in range(len(tensors)) if group[k] == name]
        x = tensors[members[0]]
        if len(members) == 1 and not overlaps(tuple(x.shape), x.stride()):
            x = x.clone(memory_format=torch.contiguous_format)
            layouts[name] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), 0)
            buffers.append(x.view(-1).view(torch.uint8))
            continue
        starts, ends = [], []
        for x in [tensors[k] for k in members]:
            last = sum((n - 1) * s for n, s in zip(x.shape, x.stride()))
            starts.append(x.storage_offset() * x.itemsize)
            ends.append((x.storage_offset() + last + 1) * x.itemsize)
        start = min(starts)
        for k in members:
            x = tensors[k]
            offset = x.storage_offset() - start // x.itemsize
            layouts[k] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), offset)
        memory = torch.empty(0, dtype=torch.uint8).set_(x.untyped_storage())
        buffers.append(memory[start : max(ends)].clone())
    return buffers, layouts


# %% alternate: one_pass
# Merge lists of tensors as they meet, without graph: each tensor's bytes as a Python set.
def pack_views(tensors):
    from itertools import product

    def cells(x):
        w = x.itemsize
        return [
            (x.storage_offset() + sum(i * s for i, s in zip(index, x.stride()))) * w + k
            for index in product(*map(range, x.shape))
            for k in range(w)
        ]

    groups = []  # (address of the storage, bytes, positions)
    for k, x in enumerate(tensors):
        home, mine, who = x.untyped_storage()._cdata, set(cells(x)), [k]
        rest = []
        for group in groups:
            if group[0] == home and group[1] & mine:
                mine, who = mine | group[1], who + group[2]
            else:
                rest.append(group)
        groups = [*rest, (home, mine, who)]

    buffers, layouts = [], {}
    for _, mine, who in groups:
        number, x = len(buffers), tensors[who[0]]
        if len(who) == 1 and len(cells(x)) == len(mine):
            new = torch.empty(x.shape, dtype=x.dtype)
            new.copy_(x)
            layouts[who[0]] = (number, x.dtype, list(x.shape), list(new.stride()), 0)
            buffers.append(new.reshape(-1).view(torch.uint8))
        else:
            align = max(tensors[k].itemsize for k in who)
            first, end = min(mine) - min(mine) % align, max(mine) + 1
            for k in who:
                y = tensors[k]
                at = (y.storage_offset() * y.itemsize - first) // y.itemsize
                layouts[k] = (number, y.dtype, y.shape, y.stride(), at)
            everything = torch.tensor(list(bytes(x.untyped_storage())), dtype=torch.uint8)
            buffers.append(everything[first:end].clone())
    return buffers, [layouts[k] for k in range(len(tensors))]


# %% alternate: numbers_of_bytes
# Give each byte of a storage its number. A tensor of these numbers, laid out as `x` is, says what `x`
# reaches; minimum, maximum and repeated numbers say the rest.
def pack_views(tensors):
    numbered = []
    for x in tensors:
        w = x.element_size()
        ids = torch.arange(x.untyped_storage().nbytes())
        steps = (*[s * w for s in x.stride()], 1)
        numbered.append(ids.as_strided((*x.shape, w), steps, x.storage_offset() * w).reshape(-1))

    def meet(a, b):
        if tensors[a].untyped_storage()._cdata != tensors[b].untyped_storage()._cdata:
            return False
        return bool(torch.isin(numbered[a], numbered[b]).any())

    waiting, buffers, layouts = list(range(len(tensors))), [], {}
    while waiting:
        members = [waiting.pop(0)]
        for k in members:  # grows while it is walked through
            linked = [other for other in waiting if meet(k, other)]
            members += linked
            waiting = [other for other in waiting if other not in linked]
        ids = torch.cat([numbered[k] for k in members])
        x = tensors[members[0]]
        memory = torch.empty(0, dtype=torch.uint8).set_(x.untyped_storage())
        if len(members) == 1 and len(ids.unique()) == len(ids):
            strides = torch.empty(x.shape, device="meta").stride()
            layouts[members[0]] = (len(buffers), x.dtype, tuple(x.shape), strides, 0)
            buffers.append(memory[ids])
            continue
        widest = max(tensors[k].element_size() for k in members)
        start = int(ids.min()) // widest * widest
        for k in members:
            x = tensors[k]
            offset = x.storage_offset() - start // x.element_size()
            layouts[k] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), offset)
        buffers.append(memory[start : int(ids.max()) + 1].clone())
    return buffers, [layouts[k] for k in range(len(tensors))]
