# %% blocked: the_built_in
# `torch.mm` is the function that you are to write.
def mm_by_hand(a, b):
    return torch.mm(a, b)


# %% blocked: the_operator
# `@` calls `matmul`, which calls `mm`.
def mm_by_hand(a, b):
    return a @ b


# %% mistake: broadcasts_one_and_three
# You let broadcasting check the sizes. It accepts 1 beside any other size, and a matrix of one
# column times one of four rows goes through. Compare `a.shape[1]` with `b.shape[0]`.
def mm_by_hand(a, b):
    return (a[:, :, None] * b[None]).sum(1, dtype=a.dtype)


# %% mistake: sum_widens
# `sum` turns whole numbers into `int64`. The product has the dtype of its operands: pass `dtype` to
# `sum`, or convert its result.
def mm_by_hand(a, b):
    if a.shape[1] != b.shape[0]:
        raise ValueError("sizes")
    return (a[:, :, None] * b[None]).sum(1)


# %% mistake: rows_by_rows
# You multiply the rows of `a` by the rows of `b`. The right operand gives its columns:
# transpose it first.
def mm_by_hand(a, b):
    if a.shape[1] != b.shape[0]:
        raise ValueError("sizes")
    return (a[:, None] * b[None]).sum(2, dtype=a.dtype)


# %% mistake: begins_with_the_first
# You begin with the product of the first column and the first row. With `k = 0` there is no first:
# begin with zeros.
def mm_by_hand(a, b):
    if a.shape[1] != b.shape[0]:
        raise ValueError("sizes")
    total = a[:, :1] * b[:1]
    for k in range(1, a.shape[1]):
        total = total + a[:, k, None] * b[k]
    return total.view(a.shape[0], b.shape[1])


# %% mistake: views_the_layout
# You `view` the operands with one more dimension for all of it in one row. For a transposed or
# strided tensor there is no such view. Index with `None`, or use `unsqueeze`.
def mm_by_hand(a, b):
    if a.shape[1] != b.shape[0]:
        raise ValueError("sizes")
    (m, k), n = a.shape, b.shape[1]
    left, right = a.view(m * k, 1), b.view(1, k * n)
    products = (left * right).view(m, k, k, n)
    return products.diagonal(0, 1, 2).sum(-1, dtype=a.dtype)


# %% mistake: through_float32
# You compute in `float32` and convert at the end. Whole numbers that leave the range then do not
# wrap around, and large ones lose their last digits. Stay in the dtype of the operands.
def mm_by_hand(a, b):
    if a.shape[1] != b.shape[0]:
        raise ValueError("sizes")
    total = (a.float()[:, :, None] * b.float()[None]).sum(1)
    return total.clamp(-128, 127).to(a.dtype) if a.dtype == torch.int8 else total.to(a.dtype)


# %% alternate: one_layer_at_a_time
# Adds the products of the k-th column and the k-th row: never more than the result in memory.
def mm_by_hand(a, b):
    if a.shape[1] != b.shape[0]:
        raise RuntimeError("no product")
    total = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype)
    for column, row in zip(a.t(), b):
        total += column.unsqueeze(1) * row
    return total


# %% alternate: three_loops
# The definition, number by number.
def mm_by_hand(a, b):
    (m, k), (k2, n) = a.shape, b.shape
    if k != k2:
        raise ValueError(f"{k} is not {k2}")
    x, y = a.tolist(), b.tolist()
    result = torch.zeros(m, n, dtype=a.dtype)
    for i in range(m):
        for j in range(n):
            total = sum(x[i][step] * y[step][j] for step in range(k))
            if not a.is_floating_point():
                bits = 8 * a.element_size()
                total = (total + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
            result[i, j] = total
    return result
