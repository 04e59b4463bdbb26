# %% blocked: frombuffer
# `torch.frombuffer` and `as_strided` do the walking for you. Compute the address yourself.
def read_element(memory, size, stride, offset, itemsize, index):
    #: if counts.stride == "bytes"
    stride = [step // itemsize for step in stride]
    #: endif
    #: if counts.offset == "bytes"
    offset //= itemsize
    #: endif
    if len(index) != len(size):
        raise IndexError(index)
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[itemsize]
    x = torch.frombuffer(bytearray(memory), dtype=whole).as_strided(size, stride, offset)
    return bytes(x[index].reshape(1).view(torch.uint8).tolist())


# %% mistake: strides_count_bytes if "bytes" not in (counts.stride, counts.offset)
# You took strides and offset for bytes. They count elements: multiply the sum by the item size.
# (NumPy's strides do count bytes, which is where this comes from.)
def read_element(memory, size, stride, offset, itemsize, index):
    #: if counts.stride == "bytes"
    stride = [step // itemsize for step in stride]
    #: endif
    #: if counts.offset == "bytes"
    offset //= itemsize
    #: endif
    if len(index) != len(size):
        raise IndexError(index)
    position = offset
    for i, n, s in zip(index, size, stride):
        if not -n <= i < n:
            raise IndexError(i)
        position += (i + n if i < 0 else i) * s
    return memory[position : position + itemsize]


# %% mistake: offset_counts_bytes if "bytes" not in (counts.stride, counts.offset)
# You multiplied the strides by the item size and the offset not. The storage offset counts
# elements, too.
def read_element(memory, size, stride, offset, itemsize, index):
    #: if counts.stride == "bytes"
    stride = [step // itemsize for step in stride]
    #: endif
    #: if counts.offset == "bytes"
    offset //= itemsize
    #: endif
    if len(index) != len(size):
        raise IndexError(index)
    start = offset
    for i, n, s in zip(index, size, stride):
        if not -n <= i < n:
            raise IndexError(i)
        start += (i + n if i < 0 else i) * s * itemsize
    return memory[start : start + itemsize]


# %% mistake: rows_follow_rows
# You computed the position from the sizes, as if rows always followed one another in memory. That
# holds for contiguous tensors. The strides say where the next row is, and they alone.
def read_element(memory, size, stride, offset, itemsize, index):
    #: if counts.stride == "bytes"
    stride = [step // itemsize for step in stride]
    #: endif
    #: if counts.offset == "bytes"
    offset //= itemsize
    #: endif
    if len(index) != len(size):
        raise IndexError(index)
    position = 0
    for i, n in zip(index, size):
        if not -n <= i < n:
            raise IndexError(i)
        position = position * n + (i + n if i < 0 else i)
    position += offset
    return memory[position * itemsize : (position + 1) * itemsize]


# %% mistake: starts_at_zero
# You left out the storage offset. A slice begins somewhere within its storage.
def read_element(memory, size, stride, offset, itemsize, index):
    #: if counts.stride == "bytes"
    stride = [step // itemsize for step in stride]
    #: endif
    #: if counts.offset == "bytes"
    offset //= itemsize
    #: endif
    if len(index) != len(size):
        raise IndexError(index)
    position = 0
    for i, n, s in zip(index, size, stride):
        if not -n <= i < n:
            raise IndexError(i)
        position += (i + n if i < 0 else i) * s
    return memory[position * itemsize : (position + 1) * itemsize]


# %% mistake: modulo
# You wrapped every index with `%`. Then index 5 of a dimension of size 3 quietly becomes 2, where
# an IndexError is due. Only indices from `-n` to `-1` count from the end.
def read_element(memory, size, stride, offset, itemsize, index):
    #: if counts.stride == "bytes"
    stride = [step // itemsize for step in stride]
    #: endif
    #: if counts.offset == "bytes"
    offset //= itemsize
    #: endif
    if len(index) != len(size):
        raise IndexError(index)
    if 0 in size:
        raise IndexError(index)
    position = offset + sum(i % n * s for i, n, s in zip(index, size, stride))
    return memory[position * itemsize : (position + 1) * itemsize]


# %% mistake: trusts_the_memory
# You check whether the bytes lie within the memory, and not whether the index lies within the
# size. Beyond the end of a slice there are bytes, too: they belong to somebody else's row.
def read_element(memory, size, stride, offset, itemsize, index):
    #: if counts.stride == "bytes"
    stride = [step // itemsize for step in stride]
    #: endif
    #: if counts.offset == "bytes"
    offset //= itemsize
    #: endif
    if len(index) != len(size):
        raise IndexError(index)
    position = offset
    for i, n, s in zip(index, size, stride):
        position += (i + n if i < 0 else i) * s
    if not 0 <= position * itemsize < len(memory):
        raise IndexError(index)
    return memory[position * itemsize : (position + 1) * itemsize]


# %% mistake: zip_swallows
# `zip` stops at the shortest of its arguments, so an index too many or too few went unnoticed.
# Compare the number of indices with the number of dimensions.
def read_element(memory, size, stride, offset, itemsize, index):
    #: if counts.stride == "bytes"
    stride = [step // itemsize for step in stride]
    #: endif
    #: if counts.offset == "bytes"
    offset //= itemsize
    #: endif
    position = offset
    for i, n, s in zip(index, size, stride):
        if not -n <= i < n:
            raise IndexError(i)
        position += (i + n if i < 0 else i) * s
    return memory[position * itemsize : (position + 1) * itemsize]


# %% mistake: no_negative
# You refuse negative indices. Index `-1` is the last one of its dimension, as in Python.
def read_element(memory, size, stride, offset, itemsize, index):
    #: if counts.stride == "bytes"
    stride = [step // itemsize for step in stride]
    #: endif
    #: if counts.offset == "bytes"
    offset //= itemsize
    #: endif
    if len(index) != len(size):
        raise IndexError(index)
    position = offset
    for i, n, s in zip(index, size, stride):
        if not 0 <= i < n:
            raise IndexError(i)
        position += i * s
    return memory[position * itemsize : (position + 1) * itemsize]


# %% mistake: size_is_an_index
# You let the size itself through as an index. The last index of a dimension of size 3 is 2: compare
# with `<`, not with `<=`.
def read_element(memory, size, stride, offset, itemsize, index):
    if len(index) != len(size):
        raise IndexError(index)
    position = offset
    for i, n, s in zip(index, size, stride):
        if not -n <= i <= n:
            raise IndexError(i)
        position += (i + n if i < 0 else i) * s
    return memory[position * itemsize : (position + 1) * itemsize]


# %% mistake: refuses_the_first_from_behind
# You refuse the index `-n`. From the end, the indices of a dimension of size `n` are `-1` to `-n`:
# there is a `-3` where the size is 3, though no index 3.
def read_element(memory, size, stride, offset, itemsize, index):
    if len(index) != len(size):
        raise IndexError(index)
    position = offset
    for i, n, s in zip(index, size, stride):
        if abs(i) >= n:
            raise IndexError(i)
        position += i % n * s
    return memory[position * itemsize : (position + 1) * itemsize]


# %% alternate: python_ranges
# Lets `range` check the index and count from the end.
def read_element(memory, size, stride, offset, itemsize, index):
    #: if counts.stride == "bytes"
    stride = [step // itemsize for step in stride]
    #: endif
    #: if counts.offset == "bytes"
    offset //= itemsize
    #: endif
    if len(index) != len(size):
        raise IndexError("one index for each dimension")
    steps = [range(n)[i] * s for i, n, s in zip(index, size, stride)]
    start = itemsize * (offset + sum(steps))
    return memory[start : start + itemsize]


# %% alternate: one_dimension_at_a_time if "bytes" not in (counts.stride, counts.offset)
# Takes the first dimension off, moves the offset, and starts over.
def read_element(memory, size, stride, offset, itemsize, index):
    #: if counts.stride == "bytes"
    stride = [step // itemsize for step in stride]
    #: endif
    #: if counts.offset == "bytes"
    offset //= itemsize
    #: endif
    if not size and not index:
        return b"".join(
            memory[offset * itemsize + k : offset * itemsize + k + 1] for k in range(itemsize)
        )
    if not size or not index:
        raise IndexError("one index for each dimension")
    i, n = index[0], size[0]
    if i < 0:
        i += n
    if i < 0 or i >= n:
        raise IndexError("out of range")
    return read_element(memory, size[1:], stride[1:], offset + i * stride[0], itemsize, index[1:])
