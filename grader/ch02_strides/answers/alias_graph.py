# %% mistake: data_ptr
# You compared `Tensor.data_ptr()`. That is where the first element lies: two views of one storage
# that begin at different elements differ in it. Compare `untyped_storage().data_ptr()`.
def alias_graph(tensors):
    def reached(x):
        w = x.element_size()
        cells = torch.zeros(x.untyped_storage().nbytes(), dtype=torch.bool)
        strides = [s * w for s in x.stride()]
        cells.as_strided((*x.shape, w), (*strides, 1), x.storage_offset() * w).fill_(True)
        return cells

    pairs = {}
    for j, b in enumerate(tensors):
        for i, a in enumerate(tensors[:j]):
            if a.data_ptr() == b.data_ptr() and a.untyped_storage().nbytes() and b.data_ptr():
                pairs[i, j] = int((reached(a) & reached(b)).sum())
    return pairs


# %% mistake: first_to_last
# You took all bytes from the first to the last of a tensor. A tensor with gaps does not reach all of
# them: even and odd elements lie between each other and have no byte in common.
def alias_graph(tensors):
    def ends(x):
        w = x.element_size()
        first = x.storage_offset() * w
        if x.numel() == 0:
            return first, first
        return first, first + w * (1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride())))

    pairs = {}
    for j, b in enumerate(tensors):
        for i, a in enumerate(tensors[:j]):
            home = a.untyped_storage()
            if home.nbytes() and home.data_ptr() == b.untyped_storage().data_ptr():
                (low, high), (first, last) = ends(a), ends(b)
                pairs[i, j] = max(0, min(high, last) - max(low, first))
    return pairs


# %% mistake: offset_and_numel
# You took `numel()` elements from the offset on. Only a contiguous tensor lies like that. Transposed
# and strided ones reach further, and expanded ones less far.
def alias_graph(tensors):
    def reached(x):
        w = x.element_size()
        first = x.storage_offset() * w
        return set(range(first, first + x.numel() * w))

    pairs = {}
    for j, b in enumerate(tensors):
        for i, a in enumerate(tensors[:j]):
            home = a.untyped_storage()
            if home.nbytes() and home.data_ptr() == b.untyped_storage().data_ptr():
                pairs[i, j] = len(reached(a) & reached(b))
    return pairs


# %% mistake: overlapping_only
# You left out the pairs that share a storage without a byte in common. They belong to the graph,
# with 0: whoever frees, resizes or saves the storage deals with both.
def alias_graph(tensors):
    def reached(x):
        w = x.element_size()
        cells = torch.zeros(x.untyped_storage().nbytes(), dtype=torch.bool)
        strides = [s * w for s in x.stride()]
        cells.as_strided((*x.shape, w), (*strides, 1), x.storage_offset() * w).fill_(True)
        return cells

    pairs = {}
    for j, b in enumerate(tensors):
        for i, a in enumerate(tensors[:j]):
            home = a.untyped_storage()
            if home.nbytes() and home.data_ptr() == b.untyped_storage().data_ptr():
                count = int((reached(a) & reached(b)).sum())
                if count:
                    pairs[i, j] = count
    return pairs


# %% mistake: elements_for_bytes
# You compared positions in elements and multiplied at the end. That is right as long as all have the
# same dtype. Element 3 of an `int16` view does not lie where element 3 of a `float32` tensor does.
def alias_graph(tensors):
    from itertools import product

    def reached(x):
        return {
            x.storage_offset() + sum(i * s for i, s in zip(index, x.stride()))
            for index in product(*map(range, x.shape))
        }

    pairs = {}
    for j, b in enumerate(tensors):
        for i, a in enumerate(tensors[:j]):
            home = a.untyped_storage()
            if home.nbytes() and home.data_ptr() == b.untyped_storage().data_ptr():
                pairs[i, j] = len(reached(a) & reached(b)) * a.element_size()
    return pairs


# %% mistake: counts_indices
# You counted a byte as often as indices reach it. An expanded tensor reaches one cell with many
# indices, and it is still one cell.
def alias_graph(tensors):
    from itertools import product

    def reached(x):
        w = x.element_size()
        return [
            (x.storage_offset() + sum(i * s for i, s in zip(index, x.stride()))) * w + k
            for index in product(*map(range, x.shape))
            for k in range(w)
        ]

    pairs = {}
    for j, b in enumerate(tensors):
        for i, a in enumerate(tensors[:j]):
            home = a.untyped_storage()
            if home.nbytes() and home.data_ptr() == b.untyped_storage().data_ptr():
                theirs = set(reached(b))
                pairs[i, j] = sum(byte in theirs for byte in reached(a))
    return pairs


# %% mistake: address_zero
# Every storage of 0 bytes has the address 0, so that by address all empty tensors seem to share one.
# They share nothing: ask for `nbytes()` first.
def alias_graph(tensors):
    def reached(x):
        w = x.element_size()
        if x.numel() == 0:
            return torch.zeros(1, dtype=torch.bool)
        cells = torch.zeros(x.untyped_storage().nbytes(), dtype=torch.bool)
        strides = [s * w for s in x.stride()]
        cells.as_strided((*x.shape, w), (*strides, 1), x.storage_offset() * w).fill_(True)
        return cells

    pairs = {}
    for j, b in enumerate(tensors):
        for i, a in enumerate(tensors[:j]):
            if a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr():
                pairs[i, j] = int((reached(a) & reached(b)).sum())
    return pairs


# %% mistake: both_directions
# Each pair is asked for once, with the smaller position first. You gave it in both directions, or a
# tensor paired with itself.
def alias_graph(tensors):
    def reached(x):
        w = x.element_size()
        cells = torch.zeros(x.untyped_storage().nbytes(), dtype=torch.bool)
        strides = [s * w for s in x.stride()]
        cells.as_strided((*x.shape, w), (*strides, 1), x.storage_offset() * w).fill_(True)
        return cells

    pairs = {}
    for j, b in enumerate(tensors):
        for i, a in enumerate(tensors):
            home = a.untyped_storage()
            if i != j and home.nbytes() and home.data_ptr() == b.untyped_storage().data_ptr():
                pairs[i, j] = int((reached(a) & reached(b)).sum())
    return pairs


# %% alternate: addresses
# Absolute addresses of all bytes, as Python sets; storages by the address of their memory.
def alias_graph(tensors):
    from itertools import combinations, product

    def addresses(x):
        steps = [s * x.element_size() for s in x.stride()] + [1]
        sizes = [*x.shape, x.element_size()]
        return {
            x.data_ptr() + sum(map(int.__mul__, index, steps))
            for index in product(*map(range, sizes))
        }

    found = {}
    for (i, a), (j, b) in combinations(enumerate(tensors), 2):
        home, other = a.untyped_storage(), b.untyped_storage()
        if home.nbytes() > 0 and home.data_ptr() == other.data_ptr():
            found[i, j] = len(addresses(a) & addresses(b))
    return found


# %% alternate: by_storage
# Group by storage first. Within a group, a row of bytes that counts who was there.
def alias_graph(tensors):
    groups = {}
    for i, x in enumerate(tensors):
        home = x.untyped_storage()
        if home.nbytes():
            groups.setdefault(home._cdata, []).append(i)
    found = {}
    for members in groups.values():
        length = tensors[members[0]].untyped_storage().nbytes()
        seen = torch.zeros(len(members), length, dtype=torch.int64)
        for row, i in zip(seen, members):
            x = tensors[i]
            offsets = torch.tensor([x.storage_offset() * x.itemsize])
            for n, s in zip((*x.shape, x.itemsize), (*[s * x.itemsize for s in x.stride()], 1)):
                offsets = (offsets[:, None] + torch.arange(n) * s).flatten()
            row[offsets] = 1
        common = seen @ seen.T
        for a, i in enumerate(members):
            for b in range(a + 1, len(members)):
                found[i, members[b]] = int(common[a, b])
    return found
