# %% blocked: the_method
# The method of that name answers the question. Answer it from sizes and strides.
def is_contiguous(size, stride, channels_last=False):
    wanted = torch.channels_last if channels_last else torch.contiguous_format
    return torch.empty_strided(size, stride).is_contiguous(memory_format=wanted)


# %% mistake: equals_dense
# You compared with the strides of a fresh tensor. They differ in dimensions of size 1, and there
# PyTorch does not look at the stride: nobody ever takes a second step.
def is_contiguous(size, stride, channels_last=False):
    if not channels_last and 0 in size:
        return True
    if channels_last and len(size) != 4:
        return False
    expected = 1
    for dim in [1, 3, 2, 0] if channels_last else range(len(size) - 1, -1, -1):
        if stride[dim] != expected:
            return False
        expected *= size[dim]
    return True


# %% mistake: decreasing_strides
# You asked whether the strides decrease. They do in many tensors with gaps, such as `x[:, :2]`.
# Each stride must be *exactly* the number of elements that lie within its dimension.
def is_contiguous(size, stride, channels_last=False):
    if channels_last and len(size) != 4:
        return False
    if not channels_last and 0 in size:
        return True
    order = [0, 2, 3, 1] if channels_last else list(range(len(size)))
    steps = [stride[dim] for dim in order if size[dim] != 1]
    return steps == sorted(steps, reverse=True) and (not steps or steps[-1] == 1)


# %% mistake: dense_in_any_order
# You asked whether the tensor is dense: no gaps, each place used once. A transposed matrix is dense
# as well. Contiguous means dense *in one order*, that of the dimensions.
def is_contiguous(size, stride, channels_last=False):
    if channels_last and len(size) != 4:
        return False
    if not channels_last and 0 in size:
        return True
    expected = 1
    for s, n in sorted((s, n) for s, n in zip(stride, size) if n != 1):
        if s != expected:
            return False
        expected *= n
    return True


# %% mistake: empty_forgotten
# You applied the rule to tensors without elements. They are contiguous whatever their strides say.
def is_contiguous(size, stride, channels_last=False):
    if channels_last and len(size) != 4:
        return False
    expected = 1
    for dim in [1, 3, 2, 0] if channels_last else range(len(size) - 1, -1, -1):
        if size[dim] == 1:
            continue
        if stride[dim] != expected:
            return False
        expected *= size[dim]
    return True


# %% mistake: empty_in_both
# You made the exception for empty tensors in both questions. PyTorch makes it for plain
# contiguity only; for `channels_last` it goes by the strides.
def is_contiguous(size, stride, channels_last=False):
    if channels_last and len(size) != 4:
        return False
    if 0 in size:
        return True
    expected = 1
    for dim in [1, 3, 2, 0] if channels_last else range(len(size) - 1, -1, -1):
        if size[dim] == 1:
            continue
        if stride[dim] != expected:
            return False
        expected *= size[dim]
    return True


# %% mistake: last_dimension_is_channels
# You took the last dimension of the tensor for the channels. In a `channels_last` tensor the shape
# is still (N, C, H, W): it is dimension 1 that has stride 1.
def is_contiguous(size, stride, channels_last=False):
    if channels_last and len(size) != 4:
        return False
    if not channels_last and 0 in size:
        return True
    expected = 1
    for dim in range(len(size) - 1, -1, -1):
        if size[dim] == 1:
            continue
        if stride[dim] != expected:
            return False
        expected *= size[dim]
    return True


# %% mistake: either_order_will_do
# You take a tensor that is contiguous in the order of `channels_last` for contiguous, whatever was
# asked. Without `channels_last=True` only the order of the dimensions counts.
def is_contiguous(size, stride, channels_last=False):
    if 0 in size and not channels_last:
        return True
    orders = [(1, 3, 2, 0)] if len(size) == 4 else []
    if not channels_last:
        orders.append(range(len(size) - 1, -1, -1))
    for order in orders:
        expected, fine = 1, True
        for dim in order:
            fine = fine and (size[dim] == 1 or stride[dim] == expected)
            expected *= size[dim]
        if fine:
            return True
    return False


# %% mistake: looks_at_one_stride
# You looked for one stride of 1 and let it go at that. The other strides may still jump over gaps,
# or lie in another order.
def is_contiguous(size, stride, channels_last=False):
    if channels_last and len(size) != 4:
        return False
    if not channels_last and (0 in size or not size):
        return True
    return stride[1 if channels_last else -1] == 1


# %% alternate: by_addresses
# Lists the places of all elements in the order asked for; they must count up from 0.
def is_contiguous(size, stride, channels_last=False):
    order = (0, 2, 3, 1) if channels_last else tuple(range(len(size)))
    if len(order) != len(size):
        return False
    if 0 in size:
        if not channels_last:
            return True
        expected, fine = 1, True
        for dim in reversed(order):
            fine = fine and (size[dim] == 1 or stride[dim] == expected)
            expected = expected * size[dim]
        return fine
    places = [0]
    for dim in order:
        places = [place + i * stride[dim] for place in places for i in range(size[dim])]
    return places == list(range(len(places)))


# %% alternate: dense_stride_of_the_rest
# Leaves dimensions of size 1 out, and compares the rest with fresh strides.
def is_contiguous(size, stride, channels_last=False):
    if channels_last:
        if len(size) != 4:
            return False
        size, stride = [size[d] for d in (0, 2, 3, 1)], [stride[d] for d in (0, 2, 3, 1)]
    elif math.prod(size) == 0:
        return True
    pairs = [(n, s) for n, s in zip(size, stride) if n != 1]
    inner = [math.prod(n for n, _ in pairs[k + 1 :]) for k in range(len(pairs))]
    return inner == [s for _, s in pairs]
