# %% mistake: gathers
# Your values are right, and every one of them was copied: by an index as large as the result, row by
# row, or by padding and reshaping, as the code of Transformer-XL does. Strides can say the same.
def relative_shift(scores, keys):
    queries, distances = scores.shape[-2:]
    if distances != queries + keys - 1:
        raise ValueError("sizes")
    index = torch.arange(keys) - torch.arange(queries)[:, None] + queries - 1
    return scores.gather(-1, index.expand(*scores.shape[:-2], queries, keys))


# %% mistake: shifts_the_other_way
# You moved each row to the right of the one above. The distance $j - i$ gets smaller from one query
# to the next, so row $i$ begins $i$ places earlier than row 0.
def relative_shift(scores, keys):
    queries, distances = scores.shape[-2:]
    if distances != queries + keys - 1:
        raise ValueError("sizes")
    if queries > 1 and scores.stride(-2) < scores.stride(-1):
        scores = scores.contiguous()
    *lead, row, column = scores.stride()
    return scores.as_strided(
        (*scores.shape[:-1], keys), (*lead, row + column, column), scores.storage_offset()
    )


# %% mistake: begins_at_zero
# You began at the first column, which is the distance $-(L-1)$ and belongs to the last query. Query
# 0 and key 0 are at distance 0: column $L - 1$.
def relative_shift(scores, keys):
    queries, distances = scores.shape[-2:]
    if distances != queries + keys - 1:
        raise ValueError("sizes")
    scores = torch.cat([scores, scores[..., :1].expand(*scores.shape[:-1], queries)], -1)
    *lead, row, column = scores.stride()
    return scores.as_strided(
        (*scores.shape[:-1], keys), (*lead, row - column, column), scores.storage_offset()
    )


# %% mistake: forgets_the_offset
# You counted from the beginning of the storage. `scores` may begin later: add its
# `storage_offset()`.
def relative_shift(scores, keys):
    queries, distances = scores.shape[-2:]
    if distances != queries + keys - 1:
        raise ValueError("sizes")
    if queries > 1 and scores.stride(-2) < scores.stride(-1):
        scores = scores.contiguous()
    *lead, row, column = scores.stride()
    return scores.as_strided(
        (*scores.shape[:-1], keys), (*lead, max(row - column, 0), column), (queries - 1) * column
    )


# %% mistake: one_is_a_stride
# You took 1 for the stride of the columns, which holds for a contiguous tensor. Ask
# `scores.stride(-1)`, for the offset too.
def relative_shift(scores, keys):
    queries, distances = scores.shape[-2:]
    if distances != queries + keys - 1:
        raise ValueError("sizes")
    *lead, row, column = scores.stride()
    if row < column:
        return relative_shift(scores.contiguous(), keys)
    return scores.as_strided(
        (*scores.shape[:-1], keys),
        (*lead, max(row - 1, 0), 1),
        scores.storage_offset() + queries - 1,
    )


# %% mistake: contiguous_first
# You made `scores` contiguous first, which copies it whenever it is not. Its own strides will do,
# as long as a row is not shorter than a column's step.
def relative_shift(scores, keys):
    queries, distances = scores.shape[-2:]
    if distances != queries + keys - 1:
        raise ValueError("sizes")
    scores = scores.contiguous()
    *lead, row, column = scores.stride()
    return scores.as_strided(
        (*scores.shape[:-1], keys),
        (*lead, row - column, column),
        scores.storage_offset() + (queries - 1) * column,
    )


# %% mistake: flattens_the_batch
# You made one dimension of all leading ones, by `reshape`. Where their strides do not allow that it
# copies. Leave them alone: each keeps its stride.
def relative_shift(scores, keys):
    queries, distances = scores.shape[-2:]
    if distances != queries + keys - 1:
        raise ValueError("sizes")
    flat = scores.reshape(scores.shape[:-2].numel(), queries, distances)
    batch, row, column = flat.stride()
    if queries > 1 and row < column:
        flat = flat.contiguous()
        batch, row, column = flat.stride()
    result = flat.as_strided(
        (len(flat), queries, keys),
        (batch, max(row - column, 0), column),
        flat.storage_offset() + (queries - 1) * column,
    )
    return result.reshape(*scores.shape[:-1], keys)


# %% mistake: negative_strides
# For a transposed or an expanded input your stride is negative, and PyTorch knows none. Copy in that
# case, and compute the strides of the copy.
def relative_shift(scores, keys):
    queries, distances = scores.shape[-2:]
    if distances != queries + keys - 1:
        raise ValueError("sizes")
    *lead, row, column = scores.stride()
    if queries == 1:
        row = column
    return scores.as_strided(
        (*scores.shape[:-1], keys),
        (*lead, row - column, column),
        scores.storage_offset() + (queries - 1) * column,
    )


# %% mistake: takes_any_size
# You did not look at the last dimension. Where it is too long you return what belongs to other
# distances; where it is too short you read into the next row.
def relative_shift(scores, keys):
    queries = scores.shape[-2]
    if queries > 1 and scores.stride(-2) < scores.stride(-1):
        scores = scores.contiguous()
    *lead, row, column = scores.stride()
    start = scores.storage_offset() + (queries - 1) * column
    last = start + (keys - 1) * column
    if last >= scores.untyped_storage().nbytes() // scores.element_size() and scores.numel():
        keys = 1
    shape = (*scores.shape[:-1], keys)
    return scores.as_strided(shape, (*lead, max(row - column, 0), column), start)


# %% alternate: diagonal_of_windows
# All windows of `keys` columns, as a view, last first where needed: the wanted ones lie on a diagonal.
def relative_shift(scores, keys):
    queries, distances = scores.shape[-2:]
    if distances != queries + keys - 1:
        raise ValueError(f"{distances} distances do not fit")
    row, column = scores.stride()[-2:]
    if queries > 1 and row < column:
        index = torch.arange(keys) - torch.arange(queries)[:, None] + queries - 1
        return torch.stack([scores[..., i, index[i]] for i in range(queries)], -2)
    start = scores[..., 0, queries - 1 :].storage_offset()
    strides = [*scores.stride()[:-2], row - column if queries > 1 else 1, column]
    return torch.as_strided(scores, [*scores.shape[:-1], keys], strides, start)


# %% alternate: catches_the_error
# Tries the view, and gathers where PyTorch refuses it.
def relative_shift(scores, keys):
    L = scores.size(-2)
    if scores.size(-1) - L - keys != -1:
        raise ValueError("L + S - 1")
    size = [*scores.shape[:-2], L, keys]
    stride = list(scores.stride())
    if L > 1:
        stride[-2] -= stride[-1]
    first = scores.storage_offset() + scores.stride(-1) * (L - 1)
    try:
        return scores.as_strided(size, stride, first)
    except RuntimeError:
        index = torch.arange(keys)[None] - torch.arange(L)[:, None] + (L - 1)
        return torch.gather(scores, -1, index.expand(size))
