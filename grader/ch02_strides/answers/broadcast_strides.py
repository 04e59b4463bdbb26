# %% blocked: broadcast_tensors
# `torch.broadcast_tensors` does the whole exercise. Line up the sizes yourself.
def broadcast_strides(layouts):
    views = torch.broadcast_tensors(*(torch.empty_strided(*layout) for layout in layouts))
    return tuple(views[0].shape), [view.stride() for view in views]


# %% mistake: from_the_left
# You lined the sizes up from the left. Broadcasting aligns the *last* dimensions: fill up in front.
def broadcast_strides(layouts):
    dims = max(len(size) for size, _ in layouts)
    sizes = [tuple(size) + (1,) * (dims - len(size)) for size, _ in layouts]
    strides = [tuple(stride) + (0,) * (dims - len(stride)) for _, stride in layouts]
    common = []
    for here in zip(*sizes):
        others = set(here) - {1}
        if len(others) > 1:
            raise RuntimeError(here)
        common.append(others.pop() if others else 1)
    return tuple(common), [
        tuple(s if n == m else 0 for n, s, m in zip(size, stride, common))
        for size, stride in zip(sizes, strides)
    ]


# %% mistake: strides_stay_everywhere
# You kept the stride of a dimension that repeats. Its next index must find the same element again,
# so the step is 0, whatever the stride was before.
def broadcast_strides(layouts):
    dims = max(len(size) for size, _ in layouts)
    sizes = [(1,) * (dims - len(size)) + size for size, _ in layouts]
    strides = [(0,) * (dims - len(stride)) + stride for _, stride in layouts]
    common = []
    for here in zip(*sizes):
        others = set(here) - {1}
        if len(others) > 1:
            raise RuntimeError(here)
        common.append(others.pop() if others else 1)
    return tuple(common), strides


# %% mistake: strides_of_a_fresh_tensor
# You computed strides from the sizes. A tensor that is read with another size keeps its own strides
# wherever nothing repeats, and those may be any.
def broadcast_strides(layouts):
    dims = max(len(size) for size, _ in layouts)
    sizes = [(1,) * (dims - len(size)) + size for size, _ in layouts]
    common = []
    for here in zip(*sizes):
        others = set(here) - {1}
        if len(others) > 1:
            raise RuntimeError(here)
        common.append(others.pop() if others else 1)
    return tuple(common), [
        tuple(
            0 if n != m else math.prod(size[k + 1 :]) for k, (n, m) in enumerate(zip(size, common))
        )
        for size in sizes
    ]


# %% mistake: the_largest_size
# You took the largest size. A size of 1 goes with 0, too, and gives 0: there is nothing to repeat.
# And 0 beside 3 is an error, not 3.
def broadcast_strides(layouts):
    dims = max(len(size) for size, _ in layouts)
    sizes = [(1,) * (dims - len(size)) + size for size, _ in layouts]
    strides = [(0,) * (dims - len(stride)) + stride for _, stride in layouts]
    common = []
    for here in zip(*sizes):
        if len(set(here) - {0, 1}) > 1:
            raise RuntimeError(here)
        common.append(max(here))
    return tuple(common), [
        tuple(s if n == m else 0 for n, s, m in zip(size, stride, common))
        for size, stride in zip(sizes, strides)
    ]


# %% mistake: multiples_fit
# You let a size repeat when it divides the common one. Only 1 repeats: sizes 2 and 4 are an error.
def broadcast_strides(layouts):
    dims = max(len(size) for size, _ in layouts)
    sizes = [(1,) * (dims - len(size)) + size for size, _ in layouts]
    strides = [(0,) * (dims - len(stride)) + stride for _, stride in layouts]
    common = [0 if 0 in here else max(here) for here in zip(*sizes)]
    if any(m % n if n else m for here, m in zip(zip(*sizes), common) for n in here):
        raise RuntimeError("sizes do not fit")
    return tuple(common), [
        tuple(s if n == m else 0 for n, s, m in zip(size, stride, common))
        for size, stride in zip(sizes, strides)
    ]


# %% mistake: never_refuses
# You refuse no sizes. In a dimension where two of them differ and neither is 1, there is nothing to
# repeat that would make them equal: raise a RuntimeError.
def broadcast_strides(layouts):
    dims = max(len(size) for size, _ in layouts)
    sizes = [(1,) * (dims - len(size)) + size for size, _ in layouts]
    strides = [(0,) * (dims - len(stride)) + stride for _, stride in layouts]
    common = [0 if 0 in here else max(here) for here in zip(*sizes)]
    return tuple(common), [
        tuple(s if n == m else 0 for n, s, m in zip(size, stride, common))
        for size, stride in zip(sizes, strides)
    ]


# %% mistake: compares_with_the_first
# You compared every tensor with the first one alone. With three of them the second and the third
# may be the ones that do not fit, and the first may be the one that repeats.
def broadcast_strides(layouts):
    dims = max(len(size) for size, _ in layouts)
    sizes = [(1,) * (dims - len(size)) + size for size, _ in layouts]
    strides = [(0,) * (dims - len(stride)) + stride for _, stride in layouts]
    common = list(sizes[0])
    for size in sizes[1:]:
        for dim, (first, n) in enumerate(zip(sizes[0], size)):
            if 1 not in (first, n) and first != n:
                raise RuntimeError(size)
            common[dim] = n if first == 1 and n != 1 else common[dim]
    return tuple(common), [
        tuple(s if n == m else 0 for n, s, m in zip(size, stride, common))
        for size, stride in zip(sizes, strides)
    ]


# %% alternate: two_at_a_time
# Folds the sizes together pair by pair, then stretches each layout to the result.
def broadcast_strides(layouts):
    common = ()
    for size, _ in layouts:
        short, long = sorted([common, size], key=len)
        padded = (1,) * (len(long) - len(short)) + short
        for a, b in zip(padded, long):
            if a != b and a != 1 and b != 1:
                raise RuntimeError(f"{a} and {b} do not fit")
        common = tuple(b if a == 1 else a for a, b in zip(padded, long))
    strides = []
    for size, stride in layouts:
        lead = len(common) - len(size)
        tail = [s * (n == m) for n, s, m in zip(size, stride, common[lead:])]
        strides.append((0,) * lead + tuple(tail))
    return common, strides


# %% alternate: from_the_back
# Asks for dimension -1, -2, … of each layout; one that is not there counts as a 1.
def broadcast_strides(layouts):
    common, strides = [], [[] for _ in layouts]
    for back in range(1, max(len(size) for size, _ in layouts) + 1):
        pairs = [(n[-back], s[-back]) if len(n) >= back else (1, 0) for n, s in layouts]
        sizes = {n for n, _ in pairs if n != 1} or {1}
        if len(sizes) != 1:
            raise RuntimeError("sizes do not fit")
        (size,) = sizes
        common.insert(0, size)
        for stride, (n, s) in zip(strides, pairs):
            stride.insert(0, 0 if n == 1 else s)
    return tuple(common), [tuple(stride) for stride in strides]
