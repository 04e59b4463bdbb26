# %% blocked: the_method
# The method of that name is what the exercise asks you to build.
def reshape(x, new_size):
    return x.reshape(new_size)


# %% mistake: contiguous_first
# You made the input contiguous before you asked for a view. A non-contiguous tensor often has the
# view, too, and then the copy is in vain, and the result no longer shares memory with `x`.
def reshape(x, new_size):
    x = x.contiguous()
    stride = view_stride(tuple(x.shape), x.stride(), new_size)
    known = math.prod(n for n in new_size if n != -1)
    size = [x.numel() // known if n == -1 else n for n in new_size]
    return torch.as_strided(x, size, stride, x.storage_offset())


# %% mistake: always_copies
# You copied every time. Where a view is possible `reshape` returns one, and whoever writes into it
# writes into `x`.
def reshape(x, new_size):
    x = x.clone(memory_format=torch.contiguous_format)
    stride = view_stride(tuple(x.shape), x.stride(), new_size)
    known = math.prod(n for n in new_size if n != -1)
    size = [x.numel() // known if n == -1 else n for n in new_size]
    return torch.as_strided(x, size, stride, 0)


# %% mistake: never_copies
# You laid fresh strides over the bytes of `x`, whatever its layout. Reshaping is not only a matter
# of metadata: where the elements do not lie in row-major order, they must be moved.
def reshape(x, new_size):
    view_stride(tuple(x.shape), x.stride(), new_size)
    known = math.prod(n for n in new_size if n != -1)
    size = [x.numel() // known if n == -1 else n for n in new_size]
    stride = [math.prod(size[k + 1 :]) for k in range(len(size))]
    if (x.numel() + x.storage_offset()) * x.element_size() > x.untyped_storage().nbytes():
        x = x.contiguous()
    return torch.as_strided(x, size, stride, x.storage_offset())


# %% mistake: offset_of_the_storage
# You forgot the storage offset of `x`. `as_strided` counts from the beginning of the storage, and a
# slice does not begin there.
def reshape(x, new_size):
    stride = view_stride(tuple(x.shape), x.stride(), new_size)
    if stride is None:
        x = x.contiguous()
        stride = view_stride(tuple(x.shape), x.stride(), new_size)
    known = math.prod(n for n in new_size if n != -1)
    size = [x.numel() // known if n == -1 else n for n in new_size]
    return torch.as_strided(x, size, stride, 0)


# %% mistake: offset_of_the_original
# You applied the storage offset of `x` to its copy. The copy is a tensor of its own and begins at
# the beginning of its storage.
def reshape(x, new_size):
    offset = x.storage_offset()
    stride = view_stride(tuple(x.shape), x.stride(), new_size)
    if stride is None:
        x = x.contiguous()
        stride = view_stride(tuple(x.shape), x.stride(), new_size)
    known = math.prod(n for n in new_size if n != -1)
    size = [x.numel() // known if n == -1 else n for n in new_size]
    return torch.as_strided(x, size, stride, offset)


# %% mistake: clone_keeps_the_order
# You copied with `clone()`, which keeps the strides of a dense tensor: the clone of a transposed
# matrix is transposed as well. Ask for `torch.contiguous_format`, or call `contiguous()`.
def reshape(x, new_size):
    stride = view_stride(tuple(x.shape), x.stride(), new_size)
    known = math.prod(n for n in new_size if n != -1)
    size = [x.numel() // known if n == -1 else n for n in new_size]
    if stride is None:
        x = x.clone()
        stride = [math.prod(size[k + 1 :]) for k in range(len(size))]
    return torch.as_strided(x, size, stride, x.storage_offset())


# %% mistake: copies_twice
# You copied twice: once to make a contiguous tensor, and that one again. The second time everything
# was in order already.
def reshape(x, new_size):
    stride = view_stride(tuple(x.shape), x.stride(), new_size)
    if stride is None:
        x = x.contiguous().clone()
        stride = view_stride(tuple(x.shape), x.stride(), new_size)
    known = math.prod(n for n in new_size if n != -1)
    size = [x.numel() // known if n == -1 else n for n in new_size]
    return torch.as_strided(x, size, stride, x.storage_offset())


# %% mistake: minus_one_to_as_strided
# You handed -1 to `as_strided`, which does not work sizes out. Replace it by the number that makes
# the size fit.
def reshape(x, new_size):
    stride = view_stride(tuple(x.shape), x.stride(), new_size)
    if stride is None:
        x = x.contiguous()
        stride = view_stride(tuple(x.shape), x.stride(), new_size)
    return torch.as_strided(x, new_size, stride, x.storage_offset())


# %% alternate: fill_a_new_tensor
# Where there is no view: takes a fresh tensor, lays the *old* size over it, and copies into that.
def reshape(x, new_size):
    stride = view_stride(tuple(x.shape), x.stride(), new_size)
    size = list(new_size)
    if -1 in size:
        size[size.index(-1)] = -x.numel() // math.prod(size)
    if stride is not None:
        return x.as_strided(size, stride)
    result = torch.empty(size, dtype=x.dtype)
    old = [math.prod(x.shape[k + 1 :]) for k in range(x.dim())]
    result.as_strided(x.shape, old).copy_(x)
    return result


# %% alternate: decides_by_strides_alone
# Finds out for itself whether neighbours merge, dimension by dimension, and lets `set_` write the
# record.
def reshape(x, new_size):
    size = list(new_size)
    if size.count(-1) == 1 and 0 not in size:
        size[size.index(-1)] = x.numel() // -math.prod(size)
    if any(n < 0 for n in size) or math.prod(size) != x.numel():
        raise RuntimeError(f"{new_size} does not fit {tuple(x.shape)}")
    stride = view_stride(tuple(x.shape), x.stride(), tuple(size))
    source = x if stride is not None else x.clone(memory_format=torch.contiguous_format)
    if stride is None:
        stride = [math.prod(size[k + 1 :]) for k in range(len(size))]
    record = torch.empty(0, dtype=x.dtype)
    return record.set_(source.untyped_storage(), source.storage_offset(), size, stride)


# %% alternate: strides_by_way_of_meta
# Copies into an empty tensor; asks a tensor of the meta device, which has no memory, for strides.
def reshape(x, new_size):
    strides = view_stride(tuple(x.shape), x.stride(), new_size)
    rest = -math.prod(new_size) if -1 in new_size else 1
    new_size = [x.numel() // rest if n == -1 else n for n in new_size]
    if strides is not None:
        return x.as_strided(new_size, strides, x.storage_offset())
    out = torch.empty(new_size, dtype=x.dtype)
    out.as_strided(x.shape, torch.empty(x.shape, device="meta").stride()).copy_(x)
    return out
