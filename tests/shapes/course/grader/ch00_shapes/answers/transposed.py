# %% blocked: builtin
# The method is the answer.
def transposed(x):
    return x.t()


# %% mistake: copies
# Your result has the right values in a storage of its own. A transposed tensor needs no copy: the
# same bytes are read with the strides exchanged.
def transposed(x):
    rows, columns = x.shape
    down, right = x.stride()
    return torch.as_strided(x, (columns, rows), (right, down), x.storage_offset()).contiguous()


# %% mistake: forgets_the_offset
# You read from the beginning of the storage. `x` may begin later: keep its `storage_offset()`.
def transposed(x):
    return torch.as_strided(x, (x.shape[1], x.shape[0]), (x.stride(1), x.stride(0)), 0)


# %% alternate: by_set
# The same four numbers, given to a fresh tensor.
def transposed(x):
    result = torch.empty(0, dtype=x.dtype)
    return result.set_(x.untyped_storage(), x.storage_offset(), x.shape[::-1], x.stride()[::-1])
