# %% mistake: only_stride_zero
# You look for stride 0 alone. That finds expanded tensors. Overlapping windows have no stride 0, and
# their indices meet all the same: (0, 1) and (1, 0) if both strides are 1. (The 1 that
# `torch._debug_has_internal_overlap` returns means stride 0, too. Of windows it says 2, "too hard".)
def overlaps(size, stride):
    return 0 not in size and any(s == 0 and n > 1 for n, s in zip(size, stride))


# %% mistake: unused_zero
# A size-1 dimension has one index, so that its stride is never used, 0 or not. Leave such dimensions
# out before you look at any stride.
def overlaps(size, stride):
    if 0 in size:
        return False
    cells, span = {0}, 1
    if 0 in stride:
        return True
    for step, n in sorted(zip(stride, size)):
        if step >= span:
            span += step * (n - 1)
            if step > sum(s * (m - 1) for s, m in zip(stride, size) if s < step):
                if all(s <= step for s in stride):
                    continue
        new = set()
        for k in range(n):
            for cell in cells:
                if cell + k * step in new:
                    return True
                new.add(cell + k * step)
        cells = new
    return False


# %% mistake: empty_tensor
# A size of 0 means no element at all, so that no two indices can meet, whatever the strides say.
def overlaps(size, stride):
    dims = sorted((s, n) for n, s in zip(size, stride) if n != 1)
    if any(s == 0 for s, n in dims):
        return True
    while dims and dims[-1][0] > sum(s * (n - 1) for s, n in dims[:-1]):
        dims.pop()
    cells = {0}
    for step, n in dims:
        new = set()
        for k in range(n):
            for cell in cells:
                if cell + k * step in new:
                    return True
                new.add(cell + k * step)
        cells = new
    return False


# %% mistake: maybe_means_yes
# You answer "yes" wherever a stride is within reach of the smaller ones. That only shows that they
# *may* meet. Strides 2 and 3 with sizes 3 and 3 step past each other; look at the cells themselves.
def overlaps(size, stride):
    if 0 in size:
        return False
    reach = 0
    for step, n in sorted((s, n) for n, s in zip(size, stride) if n > 1):
        if step <= reach or step == 0:
            return True
        reach += step * (n - 1)
    return False


# %% mistake: counts_cells_only
# More elements than cells must collide, and that is all you look for. Fewer elements than cells can
# collide as well: size (2, 2, 2) and stride (3, 5, 8) has room for 17, and 3 + 5 = 8.
def overlaps(size, stride):
    from math import prod

    if 0 in size:
        return False
    return prod(size) > 1 + sum((n - 1) * s for n, s in zip(size, stride))


# %% mistake: pairs_only
# You compare the dimensions two by two. Three can meet where no two do: strides 3, 5 and 8 with size
# 2 each, for 3 + 5 = 8.
def overlaps(size, stride):
    from math import gcd

    if 0 in size:
        return False
    dims = [(s, n) for n, s in zip(size, stride) if n > 1]
    if any(s == 0 for s, n in dims):
        return True
    for i, (a, n) in enumerate(dims):
        for b, m in dims[i + 1 :]:
            shared = gcd(a, b)
            if b // shared < n and a // shared < m:
                return True
    return False


# %% mistake: reach_off_by_one
# Along a dimension of size n one takes n - 1 steps, not n. With n the rows of a plain matrix seem to
# be within reach of each other.
def overlaps(size, stride):
    if 0 in size:
        return False
    reach = 0
    for step, n in sorted((s, n) for n, s in zip(size, stride) if n > 1):
        if step <= reach or step == 0:
            return True
        reach += step * n
    return False


# %% mistake: torch_says_maybe
# You took everything but a clear "no" of `torch._debug_has_internal_overlap` for a "yes". It says "too
# hard" of every tensor with gaps and of all strides that are in the least unusual.
def overlaps(size, stride):
    if 0 in size:
        return False
    shape_only = torch.empty_strided(size, stride, device="meta")
    return torch._debug_has_internal_overlap(shape_only) != 0


# %% alternate: sets_and_pigeonholes
# Cells as a Python set. Where there are more elements than cells, two must share one.
def overlaps(size, stride):
    from math import prod

    if prod(size) == 0:
        return False
    dims = {d for d in range(len(size)) if size[d] > 1}
    while dims:
        far = max(dims, key=lambda d: stride[d])
        rest = sum((size[d] - 1) * stride[d] for d in dims - {far})
        if stride[far] <= rest:
            break
        dims.remove(far)
    span = 1 + sum((size[d] - 1) * stride[d] for d in dims)
    if prod(size[d] for d in dims) > span:
        return True
    if any(stride[d] == 0 for d in dims):
        return True
    cells = [0]
    for d in dims:
        cells = [cell + k * stride[d] for k in range(size[d]) for cell in cells]
    return len(set(cells)) < len(cells)


# %% alternate: differences
# Two indices meet if a difference of indices, not all zero, costs nothing. So collect what the
# differences of the dimensions so far can cost; the next one must hit one of these costs.
def overlaps(size, stride):
    if 0 in size:
        return False
    dims = sorted((s, n) for n, s in zip(size, stride) if n > 1)
    while dims and dims[-1][0] > sum(s * (n - 1) for s, n in dims[:-1]):
        dims.pop()
    reach = sum(s * (n - 1) for s, n in dims)
    costs = torch.zeros(2 * reach + 1, dtype=torch.bool)
    costs[reach] = True
    for step, n in dims:
        if step == 0:
            return True
        for k in range(1, n):
            if bool(costs[reach + k * step]) if k * step <= reach else False:
                return True
        new = costs.clone()
        for k in range(1, n):
            shift = k * step
            new[shift:] |= costs[: len(costs) - shift]
            new[: len(costs) - shift] |= costs[shift:]
        costs = new
    return False
