# %% blocked: the_operator
# `@` is `torch.matmul` itself, which you are to build.
def matmul(a, b):
    return a @ b


# %% blocked: by_einsum
# `einsum` reaches the same kernels, and does the folding for you.
def matmul(a, b):
    left = a if a.dim() > 1 else a[None]
    right = b if b.dim() > 1 else b[:, None]
    result = torch.einsum("...ij,...jk->...ik", left, right)
    result = result.squeeze(-1) if b.dim() == 1 else result
    return result.squeeze(-1 if b.dim() == 1 else -2) if a.dim() == 1 else result


# %% mistake: one_mm_per_matrix
# You call `mm` for each matrix of the batch and stack the results. The values are right. But each
# call has its own cost, and stacking copies the result once more. Fold the batch into the rows,
# or call `bmm` once.
def matmul(a, b):
    left = a if a.dim() > 1 else a[None]
    right = b if b.dim() > 1 else b[:, None]
    m, n = left.shape[-2], right.shape[-1]
    batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left = left.expand(*batch, *left.shape[-2:]).flatten(0, -3) if batch else left[None]
    right = right.expand(*batch, *right.shape[-2:]).flatten(0, -3) if batch else right[None]
    if left.shape[-1] != right.shape[-2]:
        raise ValueError("inner sizes")
    results = [torch.mm(x, y) for x, y in zip(left, right)]
    result = torch.stack(results) if results else left.new_zeros(0, m, n)
    rows, columns = (m,) if a.dim() > 1 else (), (n,) if b.dim() > 1 else ()
    return result.reshape((*batch, *rows, *columns))


# %% mistake: bmm_for_everything
# You expand the matrix on the right to a batch and call `bmm`. It copies nothing, but makes many
# small products of what could be one large one. If there is one matrix on the right, stand the
# rows of the whole stack on top of each other and call `mm`.
def matmul(a, b):
    if not a.dim() or not b.dim():
        raise ValueError("scalar")
    left = a if a.dim() > 1 else a[None]
    right = b if b.dim() > 1 else b[:, None]
    m, k, n = left.shape[-2], right.shape[-2], right.shape[-1]
    batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    count = math.prod(batch)
    left = left.expand(*batch, *left.shape[-2:]).reshape(count, m, left.shape[-1])
    right = right.expand(*batch, k, n).reshape(count, k, n)
    rows, columns = (m,) if a.dim() > 1 else (), (n,) if b.dim() > 1 else ()
    return torch.bmm(left, right).view((*batch, *rows, *columns))


# %% mistake: squeezes_every_one
# You call `squeeze()` without a number. It removes every dimension of size 1, also those that the
# operands brought along. Remove the one that you added, by its number.
def matmul(a, b):
    left = a if a.dim() > 1 else a[None]
    right = b if b.dim() > 1 else b[:, None]
    m, k, n = left.shape[-2], right.shape[-2], right.shape[-1]
    batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    count = math.prod(batch)
    if right.dim() == 2:
        result = torch.mm(left.reshape(count * m, left.shape[-1]), right)
    else:
        left = left.expand(*batch, *left.shape[-2:]).reshape(count, m, left.shape[-1])
        result = torch.bmm(left, right.expand(*batch, k, n).reshape(count, k, n))
    result = result.view((*batch, m, n))
    return result.squeeze() if 1 in (a.dim(), b.dim()) else result


# %% mistake: adds_on_the_wrong_side
# You made a row of the vector on the right. It has to be a column: the 1 goes behind its size.
def matmul(a, b):
    left = a if a.dim() > 1 else a[None]
    right = b if b.dim() > 1 else b[None]
    m, k, n = left.shape[-2], right.shape[-2], right.shape[-1]
    batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    count = math.prod(batch)
    if right.dim() == 2:
        result = torch.mm(left.reshape(count * m, left.shape[-1]), right)
    else:
        left = left.expand(*batch, *left.shape[-2:]).reshape(count, m, left.shape[-1])
        result = torch.bmm(left, right.expand(*batch, k, n).reshape(count, k, n))
    rows, columns = (m,) if a.dim() > 1 else (), (n,) if b.dim() > 1 else ()
    return result.view((*batch, *rows, *columns))


# %% mistake: reshape_takes_ks_word
# You fold with the number of rows of `b`: `a.reshape(-1, k)`. Operands that do not fit then slip
# through, because `reshape` cuts the rows of `a` into pieces of another length. Fold with the
# last size of `a` itself. `mm` then compares the two.
def matmul(a, b):
    if not a.dim() or not b.dim():
        raise ValueError("scalar")
    left = a if a.dim() > 1 else a[None]
    right = b if b.dim() > 1 else b[:, None]
    m, k, n = left.shape[-2], right.shape[-2], right.shape[-1]
    batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    count = math.prod(batch)
    if right.dim() == 2:
        tall = left.reshape(-1, k) if k else left.reshape(count * m, 0)
        result = torch.mm(tall, right)[: count * m]
    else:
        left = left.expand(*batch, *left.shape[-2:]).reshape(count, m, left.shape[-1])
        result = torch.bmm(left, right.expand(*batch, k, n).reshape(count, k, n))
    rows, columns = (m,) if a.dim() > 1 else (), (n,) if b.dim() > 1 else ()
    return result.view((*batch, *rows, *columns))


# %% mistake: minus_one_of_nothing
# `reshape(-1, k)` works out the number of rows by division. With `k = 0` there is nothing to
# divide by, and it raises. Compute the number of rows from the sizes.
def matmul(a, b):
    left = a if a.dim() > 1 else a[None]
    right = b if b.dim() > 1 else b[:, None]
    m, k, n = left.shape[-2], right.shape[-2], right.shape[-1]
    batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    if right.dim() == 2:
        result = torch.mm(left.reshape(-1, left.shape[-1]), right)
    else:
        left = left.expand(*batch, *left.shape[-2:]).reshape(-1, m, left.shape[-1])
        result = torch.bmm(left, right.expand(*batch, k, n).reshape(-1, k, n))
    rows, columns = (m,) if a.dim() > 1 else (), (n,) if b.dim() > 1 else ()
    return result.view((*batch, *rows, *columns))


# %% mistake: reshape_as_the_judge
# You leave it to `reshape` to notice that operands do not fit. It compares numbers of elements, and
# where there are none, 0 is 0: an empty `(0, 5)` is taken for a `(0, 3)`. Compare the sizes yourself.
def matmul(a, b):
    left = a if a.dim() > 1 else a[None]
    right = b if b.dim() > 1 else b[:, None]
    m, k, n = left.shape[-2], right.shape[-2], right.shape[-1]
    batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    if right.dim() == 2:
        result = torch.mm(left.reshape(math.prod(batch) * m, k), right)
    else:
        left = left.expand(*batch, *left.shape[-2:]).reshape(math.prod(batch), m, k)
        result = torch.bmm(left, right.expand(*batch, k, n).reshape(math.prod(batch), k, n))
    rows, columns = (m,) if a.dim() > 1 else (), (n,) if b.dim() > 1 else ()
    return result.view((*batch, *rows, *columns))


# %% mistake: view_wants_luck
# `view` raises where the batch dimensions do not lie one behind the other in memory, as after a
# `transpose` or `expand`. `reshape` gives a view where there is one and copies where there is none.
def matmul(a, b):
    left = a if a.dim() > 1 else a[None]
    right = b if b.dim() > 1 else b[:, None]
    m, k, n = left.shape[-2], right.shape[-2], right.shape[-1]
    batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    count = math.prod(batch)
    if right.dim() == 2:
        result = torch.mm(left.view(count * m, left.shape[-1]), right)
    else:
        left = left.expand(*batch, *left.shape[-2:]).reshape(count, m, left.shape[-1])
        result = torch.bmm(left, right.expand(*batch, k, n).reshape(count, k, n))
    rows, columns = (m,) if a.dim() > 1 else (), (n,) if b.dim() > 1 else ()
    return result.view((*batch, *rows, *columns))


# %% mistake: contiguous_to_be_sure
# You call `contiguous()` before multiplying. For an operand with exchanged dimensions, or an
# expanded one, that copies. The kernels read any two strides: leave the operands as they are.
def matmul(a, b):
    left = a if a.dim() > 1 else a[None]
    right = b if b.dim() > 1 else b[:, None]
    m, k, n = left.shape[-2], right.shape[-2], right.shape[-1]
    batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    count = math.prod(batch)
    if right.dim() == 2:
        tall = left.contiguous().view(count * m, left.shape[-1])
        result = torch.mm(tall, right.contiguous())
    else:
        left = left.expand(*batch, *left.shape[-2:]).contiguous().view(count, m, left.shape[-1])
        result = torch.bmm(left, right.expand(*batch, k, n).contiguous().view(count, k, n))
    rows, columns = (m,) if a.dim() > 1 else (), (n,) if b.dim() > 1 else ()
    return result.view((*batch, *rows, *columns))


# %% mistake: batches_do_not_broadcast
# You take the batch dimensions of `a` for those of the result. They may be fewer than those of
# `b`, or 1 where `b` has more: `torch.broadcast_shapes` gives the common shape.
def matmul(a, b):
    left = a if a.dim() > 1 else a[None]
    right = b if b.dim() > 1 else b[:, None]
    m, k, n = left.shape[-2], right.shape[-2], right.shape[-1]
    batch = left.shape[:-2] or right.shape[:-2]
    count = math.prod(batch)
    if right.dim() == 2:
        result = torch.mm(left.reshape(count * m, left.shape[-1]), right)
    else:
        left = left.expand(*batch, *left.shape[-2:]).reshape(count, m, left.shape[-1])
        result = torch.bmm(left, right.expand(*batch, k, n).reshape(count, k, n))
    rows, columns = (m,) if a.dim() > 1 else (), (n,) if b.dim() > 1 else ()
    return result.view((*batch, *rows, *columns))


# %% alternate: recursion_for_vectors
# Vectors become matrices and the function calls itself; batches are made equal by broadcast_to.
def matmul(a, b):
    if a.ndim < 1 or b.ndim < 1:
        raise ValueError("scalars are no operands")
    if a.ndim == 1:
        return matmul(a.unsqueeze(0), b).squeeze(-2 if b.ndim > 1 else 0)
    if b.ndim == 1:
        return matmul(a, b.unsqueeze(1)).squeeze(-1)
    if a.ndim == b.ndim == 2:
        return torch.mm(a, b)
    if b.ndim == 2:
        return torch.mm(a.flatten(0, -2), b).unflatten(0, a.shape[:-1])
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = a.broadcast_to(batch + a.shape[-2:]).flatten(0, -3)
    y = b.broadcast_to(batch + b.shape[-2:]).flatten(0, -3)
    return torch.bmm(x, y).unflatten(0, batch)


# %% alternate: as_torch_does
# A stack that is no view of a tall matrix goes to bmm, with the matrix expanded: no copy at all.
def matmul(a, b):
    if min(a.dim(), b.dim()) == 0:
        raise RuntimeError("both arguments need to be at least 1D")
    left, right = torch.atleast_2d(a), b if b.dim() > 1 else b.unsqueeze(-1)
    out = [*torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])]
    shape = (
        out + ([left.shape[-2]] if a.dim() > 1 else []) + ([right.shape[-1]] if b.dim() > 1 else [])
    )
    if right.dim() == 2:
        try:
            tall = left.view(left.shape[:-1].numel(), left.shape[-1])
        except RuntimeError:
            pass
        else:
            return torch.mm(tall, right).view(shape)
    size = math.prod(out)
    left = left.expand(out + [*left.shape[-2:]]).reshape([size, *left.shape[-2:]])
    right = right.expand(out + [*right.shape[-2:]]).reshape([size, *right.shape[-2:]])
    return torch.bmm(left, right).reshape(shape)
