# %% blocked: empty_permuted
# `torch.empty_permuted` does the whole exercise. Compute the strides from the sizes.
def dense_stride(size, order):
    return torch.empty_permuted(size, order).stride()


# %% mistake: order_of_memory
# You returned the strides in the order in which the dimensions lie in memory. They are asked for
# in the order of `size`: write each to the place of its dimension.
def dense_stride(size, order):
    stride, step = [], 1
    for dim in reversed(order):
        stride.insert(0, step)
        step *= max(size[dim], 1)
    return tuple(stride)


# %% mistake: always_row_major
# You gave the row-major strides and left `order` aside. It says which dimension is innermost.
def dense_stride(size, order):
    stride, step = [0] * len(size), 1
    for dim in reversed(range(len(size))):
        stride[dim] = step
        step *= max(size[dim], 1)
    return tuple(stride)


# %% mistake: outermost_first
# You gave stride 1 to the dimension that comes first in `order`. That one varies slowest, so it
# gets the largest stride; begin at the end of `order`.
def dense_stride(size, order):
    stride, step = [0] * len(size), 1
    for dim in order:
        stride[dim] = step
        step *= max(size[dim], 1)
    return tuple(stride)


# %% mistake: inverse_order
# You took `order[dim]` for the place of `dim` in memory. It is the other way round: `order[place]`
# is the dimension. The two agree for permutations that undo themselves, and only for those.
def dense_stride(size, order):
    places = [order.index(dim) for dim in range(len(size))]
    stride, step = [0] * len(size), 1
    for dim in reversed(places):
        stride[dim] = step
        step *= max(size[dim], 1)
    return tuple(stride)


# %% mistake: times_zero
# You multiplied by a size of 0, and all strides outside of it became 0. PyTorch takes such a
# dimension for one of size 1 here.
def dense_stride(size, order):
    stride, step = [0] * len(size), 1
    for dim in reversed(order):
        stride[dim] = step
        step *= size[dim]
    return tuple(stride)


# %% mistake: own_size_counted
# You multiplied by a dimension's own size before you wrote its stride. A step along a dimension
# skips what lies *within* it: the innermost stride is 1.
def dense_stride(size, order):
    stride, step = [0] * len(size), 1
    for dim in reversed(order):
        step *= max(size[dim], 1)
        stride[dim] = step
    return tuple(stride)


# %% alternate: products
# Each stride is the product of the sizes of all dimensions further in.
def dense_stride(size, order):
    place = {dim: number for number, dim in enumerate(order)}
    inner = [[max(size[d], 1) for d in order[place[dim] + 1 :]] for dim in range(len(size))]
    return tuple(math.prod(sizes) for sizes in inner)


# %% alternate: cumulative_product
# Multiplies up the sizes with torch, and sorts the result back with the inverse permutation.
def dense_stride(size, order):
    inward = torch.tensor([max(size[dim], 1) for dim in order], dtype=torch.int64)
    steps = torch.cat([inward[1:], torch.ones(min(1, len(size)), dtype=torch.int64)])
    steps = steps.flip(0).cumprod(0).flip(0)
    back = torch.tensor(order, dtype=torch.int64).argsort()
    return tuple(steps[back].tolist())
