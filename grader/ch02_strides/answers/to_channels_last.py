# %% blocked: memory_format
# `memory_format=torch.channels_last` chooses the strides and moves the bytes for you.
def to_channels_last(x):
    return x.contiguous(memory_format=torch.channels_last)


# %% mistake: nhwc
# You returned NHWC: the dimensions themselves have changed places, and `[0, 2, 5, 7]` means
# another element than before. Permute back after the copy. The shape stays, the strides change.
def to_channels_last(x):
    return x.permute(0, *range(2, x.dim()), 1).contiguous()


# %% mistake: reshape_for_permute
# You used `reshape` where a permutation is meant. `reshape` reads the elements in row-major order
# and deals them out again in that order: the shape is right, and the elements are scrambled.
def to_channels_last(x):
    n, c, *spatial = x.shape
    return x.reshape(n, *spatial, c).movedim(-1, 1)


# %% mistake: strides_without_bytes
# You wrote down the right strides and left the bytes where they were. Strides say how memory is
# read. If the elements are to be found in another order, they must be moved there first.
def to_channels_last(x):
    strides, step = [0] * x.dim(), 1
    for dim in [1, *range(x.dim() - 1, 1, -1), 0]:
        strides[dim] = step
        step *= x.shape[dim]
    return x.contiguous().as_strided(x.shape, strides)


# %% mistake: contiguous_at_the_end
# Your last `contiguous()` undoes the work: it copies everything back into row-major order. A
# channels-last tensor is dense, and not contiguous.
def to_channels_last(x):
    back = x.permute(0, *range(2, x.dim()), 1).contiguous().movedim(-1, 1)
    return back.contiguous()


# %% mistake: always_copies
# You copy even when the elements lie in the right order already. Ask first: `contiguous()` on the
# permuted tensor copies only if it must.
def to_channels_last(x):
    strides, step = [0] * x.dim(), 1
    for dim in [1, *range(x.dim() - 1, 1, -1), 0]:
        strides[dim] = step
        step *= x.shape[dim]
    return torch.empty_strided(x.shape, strides, dtype=x.dtype).copy_(x)


# %% mistake: contiguous_first
# Your first `contiguous()` is a copy that nobody needs: the second one has to copy all of it
# again, and reads any layout just as well. And what was in the right order already got copied twice.
def to_channels_last(x):
    strides, step = [0] * x.dim(), 1
    for dim in [1, *range(x.dim() - 1, 1, -1), 0]:
        strides[dim] = step
        step *= x.shape[dim]
    moved = x.contiguous().movedim(1, -1).contiguous()
    return moved.as_strided(x.shape, strides)


# %% mistake: size_one_strides
# Your result is right wherever a size is at least 2. With sizes of 1 `contiguous()` is content with
# any stride and leaves an odd one in place. Write the strides down with `as_strided`.
def to_channels_last(x):
    return x.movedim(1, -1).contiguous().movedim(-1, 1)


# %% mistake: gaps_overlooked
# You looked only whether the strides fall from the batch to the channels. They do so in a slice of
# a larger tensor, too, where the pixels lie in order and apart. Compare with the exact strides.
def to_channels_last(x):
    strides, step = [0] * x.dim(), 1
    for dim in [1, *range(x.dim() - 1, 1, -1), 0]:
        strides[dim] = step
        step *= x.shape[dim]
    moved = x.movedim(1, -1)
    have = [step for step, size in zip(moved.stride(), moved.shape, strict=True) if size > 1]
    if have == sorted(have, reverse=True) and 0 not in have:
        return x.as_strided(x.shape, strides)
    return moved.contiguous().as_strided(x.shape, strides)


# %% mistake: images_only
# Your code takes four dimensions apart, and sound has three, video five. Treat all dimensions
# from the third on alike.
def to_channels_last(x):
    n, c, h, w = x.shape
    moved = x.permute(0, 2, 3, 1).contiguous()
    return moved.as_strided(x.shape, (h * w * c, 1, w * c, c))


# %% alternate: empty_strided
# Strides first, bytes after: look whether `x` has them already, but for sizes of 1.
def to_channels_last(x):
    wanted, step = [0] * x.dim(), 1
    for dim in [1, *range(x.dim() - 1, 1, -1), 0]:
        wanted[dim] = step
        step *= x.shape[dim]
    fits = all(
        size == 1 or have == want
        for size, have, want in zip(x.shape, x.stride(), wanted, strict=True)
    )
    if fits:
        return x.as_strided(x.shape, wanted, x.storage_offset())
    return torch.empty_strided(x.shape, wanted, dtype=x.dtype).copy_(x)


# %% alternate: running_products
# The same with running products of the sizes, from the innermost dimension outwards.
def to_channels_last(x):
    from itertools import accumulate
    from operator import mul

    moved = x.movedim(1, -1).contiguous()
    *outer, inner = reversed(list(accumulate([1, *reversed(moved.shape[1:])], mul)))
    return torch.as_strided(moved, x.shape, [outer[0], inner, *outer[1:]])
