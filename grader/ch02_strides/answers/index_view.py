# %% blocked: brackets
# The brackets are what the exercise asks you to replace. Edit sizes, strides and offset, and let
# `torch.as_strided` do the rest.
def index_view(x, items):
    return x[items]


# %% mistake: offset_from_x
# You counted the offset from the beginning of `x`. `as_strided` counts from the beginning of the
# storage: start with `x.storage_offset()`.
def index_view(x, items):
    used = sum(item is not None and item is not ... for item in items)
    if used > x.dim():
        raise IndexError(items)
    items = list(items) if ... in items else [*items, ...]
    dots = items.index(...)
    items[dots : dots + 1] = [slice(None)] * (x.dim() - used)
    size, stride, offset, dim = [], [], 0, 0
    for item in items:
        if item is None:
            size.append(1)
            stride.append(0)
            continue
        n, s = x.shape[dim], x.stride(dim)
        dim += 1
        if isinstance(item, slice):
            start, stop, step = item.indices(n)
            size.append(len(range(start, stop, step)))
            stride.append(s * step)
            offset += start * s
        elif -n <= item < n:
            offset += item % n * s
        else:
            raise IndexError(item)
    return torch.as_strided(x, size, stride, offset)


# %% mistake: none_counts
# You counted `None` among the items that use up a dimension. It adds one and uses up none, so it
# may stand there in any number.
def index_view(x, items):
    used = sum(item is not ... for item in items)
    if used > x.dim():
        raise IndexError(items)
    items = list(items) if ... in items else [*items, ...]
    dots = items.index(...)
    used = sum(item is not None and item is not ... for item in items)
    items[dots : dots + 1] = [slice(None)] * (x.dim() - used)
    size, stride, offset, dim = [], [], x.storage_offset(), 0
    for item in items:
        if item is None:
            size.append(1)
            stride.append(0)
            continue
        n, s = x.shape[dim], x.stride(dim)
        dim += 1
        if isinstance(item, slice):
            start, stop, step = item.indices(n)
            size.append(len(range(start, stop, step)))
            stride.append(s * step)
            offset += start * s
        elif -n <= item < n:
            offset += item % n * s
        else:
            raise IndexError(item)
    return torch.as_strided(x, size, stride, offset)


# %% mistake: dots_count
# You counted `...` as an index of its own. It stands for as many dimensions as the others leave,
# and that may be none at all.
def index_view(x, items):
    used = sum(item is not None for item in items)
    if used > x.dim():
        raise IndexError(items)
    items = list(items) if ... in items else [*items, ...]
    dots = items.index(...)
    used = sum(item is not None and item is not ... for item in items)
    items[dots : dots + 1] = [slice(None)] * (x.dim() - used)
    size, stride, offset, dim = [], [], x.storage_offset(), 0
    for item in items:
        if item is None:
            size.append(1)
            stride.append(0)
            continue
        n, s = x.shape[dim], x.stride(dim)
        dim += 1
        if isinstance(item, slice):
            start, stop, step = item.indices(n)
            size.append(len(range(start, stop, step)))
            stride.append(s * step)
            offset += start * s
        elif -n <= item < n:
            offset += item % n * s
        else:
            raise IndexError(item)
    return torch.as_strided(x, size, stride, offset)


# %% mistake: step_forgotten
# You left the stride of a slice as it was. With a step of 2 the next index lies two steps further
# on: multiply the stride by the step.
def index_view(x, items):
    used = sum(item is not None and item is not ... for item in items)
    if used > x.dim():
        raise IndexError(items)
    items = list(items) if ... in items else [*items, ...]
    dots = items.index(...)
    items[dots : dots + 1] = [slice(None)] * (x.dim() - used)
    size, stride, offset, dim = [], [], x.storage_offset(), 0
    for item in items:
        if item is None:
            size.append(1)
            stride.append(0)
            continue
        n, s = x.shape[dim], x.stride(dim)
        dim += 1
        if isinstance(item, slice):
            start, stop, step = item.indices(n)
            size.append(len(range(start, stop, step)))
            stride.append(s)
            offset += start * s
        elif -n <= item < n:
            offset += item % n * s
        else:
            raise IndexError(item)
    return torch.as_strided(x, size, stride, offset)


# %% mistake: length_rounds_down
# You divided `stop - start` by the step and rounded down. A slice keeps its first element however
# long the step is: round up, or take `len(range(start, stop, step))`.
def index_view(x, items):
    used = sum(item is not None and item is not ... for item in items)
    if used > x.dim():
        raise IndexError(items)
    items = list(items) if ... in items else [*items, ...]
    dots = items.index(...)
    items[dots : dots + 1] = [slice(None)] * (x.dim() - used)
    size, stride, offset, dim = [], [], x.storage_offset(), 0
    for item in items:
        if item is None:
            size.append(1)
            stride.append(0)
            continue
        n, s = x.shape[dim], x.stride(dim)
        dim += 1
        if isinstance(item, slice):
            start, stop, step = item.indices(n)
            size.append(max(0, (stop - start) // step))
            stride.append(s * step)
            offset += start * s
        elif -n <= item < n:
            offset += item % n * s
        else:
            raise IndexError(item)
    return torch.as_strided(x, size, stride, offset)


# %% mistake: wraps_with_modulo
# You wrapped every number with `%`, so an index beyond the end quietly becomes another one. It must
# raise an IndexError.
def index_view(x, items):
    used = sum(item is not None and item is not ... for item in items)
    if used > x.dim():
        raise IndexError(items)
    items = list(items) if ... in items else [*items, ...]
    dots = items.index(...)
    items[dots : dots + 1] = [slice(None)] * (x.dim() - used)
    size, stride, offset, dim = [], [], x.storage_offset(), 0
    for item in items:
        if item is None:
            size.append(1)
            stride.append(0)
            continue
        n, s = x.shape[dim], x.stride(dim)
        dim += 1
        if isinstance(item, slice):
            start, stop, step = item.indices(n)
            size.append(len(range(start, stop, step)))
            stride.append(s * step)
            offset += start * s
        elif n == 0:
            raise IndexError(item)
        else:
            offset += item % n * s
    return torch.as_strided(x, size, stride, offset)


# %% alternate: one_item_at_a_time
# Applies the items from the left, each as a view of the last, and keeps a count of finished
# dimensions.
def index_view(x, items):
    done, left = 0, [item for item in items if item is not None and item is not ...]
    if len(left) > x.dim():
        raise IndexError("too many indices")
    skip = x.dim() - len(left)
    for item in items:
        size, stride, offset = list(x.shape), list(x.stride()), x.storage_offset()
        if item is ...:
            done += skip
        elif item is None:
            size.insert(done, 1)
            stride.insert(done, 1)
            done += 1
        elif isinstance(item, slice):
            inside = range(size[done])[item]
            offset += inside.start * stride[done]
            size[done], stride[done] = len(inside), stride[done] * inside.step
            done += 1
        else:
            offset += range(size.pop(done))[item] * stride.pop(done)
        x = torch.as_strided(x, size, stride, offset)
    return x


# %% alternate: from_the_right
# Consumes the items behind the dots from the last dimension on, and the others from the first.
def index_view(x, items):
    offset = x.storage_offset()

    def take(item, dim):
        nonlocal offset
        if isinstance(item, slice):
            inside = range(x.size(dim))[item]
            offset += x.stride(dim) * inside.start
            return [(len(inside), x.stride(dim) * inside.step)]
        offset += x.stride(dim) * range(x.size(dim))[item]
        return []

    front, back = items, ()
    for place, item in enumerate(items):
        if item is ...:
            front, back = items[:place], items[place + 1 :]
    low, high, head, tail = 0, x.dim(), [], []
    if sum(item is not None for item in (*front, *back)) > high:
        raise IndexError("more indices than dimensions")
    for item in front:
        head += [(1, 0)] if item is None else take(item, low)
        low += item is not None
    for item in reversed(back):
        high -= item is not None
        tail = ([(1, 0)] if item is None else take(item, high)) + tail
    middle = [(x.size(dim), x.stride(dim)) for dim in range(low, high)]
    pairs = head + middle + tail
    return torch.as_strided(x, [n for n, _ in pairs], [s for _, s in pairs], offset)
