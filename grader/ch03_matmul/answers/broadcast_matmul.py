# %% blocked: the_operator
# `@` is `torch.matmul`, which writes both operands out at their broadcast size.
def broadcast_matmul(a, b):
    return a @ b


# %% blocked: by_einsum
# `einsum` folds as this exercise asks, but it is not you who does it.
def broadcast_matmul(a, b):
    return torch.einsum("...ij,...jk->...ik", a, b)


# %% mistake: as_matmul_does
# You expand both operands to the common batch dimensions and reshape them to one. Where both have
# been broadcast, no view does that: `reshape` copies, at the broadcast size. Fold a dimension that
# only one operand has into rows or columns instead.
def broadcast_matmul(a, b):
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    count, m, n = math.prod(batch), a.shape[-2], b.shape[-1]
    left = a.expand(*batch, *a.shape[-2:]).reshape(count, m, a.shape[-1])
    right = b.expand(*batch, *b.shape[-2:]).reshape(count, b.shape[-2], n)
    return torch.bmm(left, right).view(*batch, m, n)


# %% mistake: one_mm_per_pair
# You go through all pairs of matrices with a call for each. That copies no operand, but it is many
# small products where one large one was asked for, and stacking copies the result.
def broadcast_matmul(a, b):
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if a.shape[-1] != b.shape[-2]:
        raise ValueError("inner sizes")
    result = a.new_empty(*batch, a.shape[-2], b.shape[-1])
    left, right = a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:])
    for index in torch.cartesian_prod(*map(torch.arange, batch)).reshape(-1, len(batch)).tolist():
        torch.mm(left[tuple(index)], right[tuple(index)], out=result[tuple(index)])
    return result if batch else torch.mm(a, b)


# %% mistake: multiplies_and_sums
# You multiply all pairs of elements and sum afterwards. The tensor of all products is larger than
# anything that `matmul` makes: that is what `bmm` is there to avoid.
def broadcast_matmul(a, b):
    if a.shape[-1] != b.shape[-2]:
        raise ValueError("inner sizes")
    return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)


# %% mistake: contiguous_at_the_end
# Your folding is right. But then you copy the result, to give it the usual strides, and so
# allocate it twice. The permuted view is the result.
def broadcast_matmul(a, b):
    dims = max(a.dim(), b.dim()) - 2
    a, b = a[(None,) * (dims + 2 - a.dim())], b[(None,) * (dims + 2 - b.dim())]
    p, q = a.shape[:dims], b.shape[:dims]
    if any(x != y and 1 not in (x, y) for x, y in zip(p, q)):
        raise ValueError("batch sizes")
    shared = [d for d in range(dims) if p[d] == q[d]]
    only_a = [d for d in range(dims) if p[d] != q[d] and q[d] == 1]
    only_b = [d for d in range(dims) if p[d] != q[d] and q[d] != 1]
    s, x, y = [p[d] for d in shared], [p[d] for d in only_a], [q[d] for d in only_b]
    m, n = a.shape[-2], b.shape[-1]
    left = a.permute(*shared, *only_b, *only_a, -2, -1)
    left = left.reshape(math.prod(s), math.prod(x) * m, a.shape[-1])
    right = b.permute(*shared, *only_a, -2, *only_b, -1)
    right = right.reshape(math.prod(s), b.shape[-2], math.prod(y) * n)
    product = torch.bmm(left, right).view(*s, *x, m, *y, n)
    now = [*shared, *only_a, dims, *only_b, dims + 1]
    return product.permute([now.index(d) for d in range(dims + 2)]).contiguous()


# %% mistake: columns_not_permuted
# You reshape `b` to wide matrices without moving its own batch dimensions behind the rows first.
# The sizes are right, and the numbers lie elsewhere: `reshape` never exchanges dimensions.
def broadcast_matmul(a, b):
    dims = max(a.dim(), b.dim()) - 2
    a, b = a[(None,) * (dims + 2 - a.dim())], b[(None,) * (dims + 2 - b.dim())]
    p, q = a.shape[:dims], b.shape[:dims]
    if any(x != y and 1 not in (x, y) for x, y in zip(p, q)) or a.shape[-1] != b.shape[-2]:
        raise ValueError("sizes")
    shared = [d for d in range(dims) if p[d] == q[d]]
    only_a = [d for d in range(dims) if p[d] != q[d] and q[d] == 1]
    only_b = [d for d in range(dims) if p[d] != q[d] and q[d] != 1]
    s, x, y = [p[d] for d in shared], [p[d] for d in only_a], [q[d] for d in only_b]
    m, n = a.shape[-2], b.shape[-1]
    left = a.permute(*shared, *only_b, *only_a, -2, -1)
    left = left.reshape(math.prod(s), math.prod(x) * m, a.shape[-1])
    right = b.permute(*shared, *only_a, *only_b, -2, -1)
    right = right.reshape(math.prod(s), b.shape[-2], math.prod(y) * n)
    product = torch.bmm(left, right).view(*s, *x, m, *y, n)
    now = [*shared, *only_a, dims, *only_b, dims + 1]
    return product.permute([now.index(d) for d in range(dims + 2)])


# %% mistake: viewed_as_the_result
# You view the product with the shape of the result at once. It has the right number of elements,
# in another order: rows and columns have dimensions folded into them. View it with the order that
# it has, then permute.
def broadcast_matmul(a, b):
    dims = max(a.dim(), b.dim()) - 2
    a, b = a[(None,) * (dims + 2 - a.dim())], b[(None,) * (dims + 2 - b.dim())]
    p, q = a.shape[:dims], b.shape[:dims]
    batch = torch.broadcast_shapes(p, q)
    shared = [d for d in range(dims) if p[d] == q[d]]
    only_a = [d for d in range(dims) if p[d] != q[d] and q[d] == 1]
    only_b = [d for d in range(dims) if p[d] != q[d] and q[d] != 1]
    s, x, y = [p[d] for d in shared], [p[d] for d in only_a], [q[d] for d in only_b]
    m, n = a.shape[-2], b.shape[-1]
    left = a.permute(*shared, *only_b, *only_a, -2, -1)
    left = left.reshape(math.prod(s), math.prod(x) * m, a.shape[-1])
    right = b.permute(*shared, *only_a, -2, *only_b, -1)
    right = right.reshape(math.prod(s), b.shape[-2], math.prod(y) * n)
    return torch.bmm(left, right).view(*batch, m, n)


# %% mistake: permuted_the_inverse_way
# At the end you permute by the list of where the dimensions *came from*. `permute` wants, for each
# dimension of the result, where it stands *now*: that is the inverse list. For two dimensions that
# change places the two are the same, and the slip does not show.
def broadcast_matmul(a, b):
    dims = max(a.dim(), b.dim()) - 2
    a, b = a[(None,) * (dims + 2 - a.dim())], b[(None,) * (dims + 2 - b.dim())]
    p, q = a.shape[:dims], b.shape[:dims]
    if any(x != y and 1 not in (x, y) for x, y in zip(p, q)):
        raise ValueError("batch sizes")
    shared = [d for d in range(dims) if p[d] == q[d]]
    only_a = [d for d in range(dims) if p[d] != q[d] and q[d] == 1]
    only_b = [d for d in range(dims) if p[d] != q[d] and q[d] != 1]
    s, x, y = [p[d] for d in shared], [p[d] for d in only_a], [q[d] for d in only_b]
    m, n = a.shape[-2], b.shape[-1]
    left = a.permute(*shared, *only_b, *only_a, -2, -1)
    left = left.reshape(math.prod(s), math.prod(x) * m, a.shape[-1])
    right = b.permute(*shared, *only_a, -2, *only_b, -1)
    right = right.reshape(math.prod(s), b.shape[-2], math.prod(y) * n)
    product = torch.bmm(left, right).view(*s, *x, m, *y, n)
    return product.permute([*shared, *only_a, dims, *only_b, dims + 1])


# %% mistake: only_folds_rows
# You fold what only `a` has into rows, and expand `a` along what only `b` has. That writes `a` out
# as often as `b` has matrices. Fold those dimensions into the columns of `b`.
def broadcast_matmul(a, b):
    dims = max(a.dim(), b.dim()) - 2
    a, b = a[(None,) * (dims + 2 - a.dim())], b[(None,) * (dims + 2 - b.dim())]
    p, q = a.shape[:dims], b.shape[:dims]
    if any(x != y and 1 not in (x, y) for x, y in zip(p, q)):
        raise ValueError("batch sizes")
    only_a = [d for d in range(dims) if p[d] != q[d] and q[d] == 1]
    rest = [d for d in range(dims) if d not in only_a]
    s, x = [q[d] for d in rest], [p[d] for d in only_a]
    m, k, n = a.shape[-2], b.shape[-2], b.shape[-1]
    left = a.permute(*rest, *only_a, -2, -1).expand(*s, *x, m, a.shape[-1])
    left = left.reshape(math.prod(s), math.prod(x) * m, a.shape[-1])
    right = b.permute(*rest, *only_a, -2, -1).reshape(math.prod(s), k, n)
    product = torch.bmm(left, right).view(*s, *x, m, n)
    now = [*rest, *only_a, dims, dims + 1]
    return product.permute([now.index(d) for d in range(dims + 2)])


# %% mistake: reshape_as_the_judge
# You leave it to `reshape` to notice that operands do not fit. It compares numbers of elements, and
# where there are none, 0 is 0: an empty `(0, 5)` is taken for a `(0, 3)`. Compare the sizes yourself.
def broadcast_matmul(a, b):
    dims = max(a.dim(), b.dim()) - 2
    a, b = a[(None,) * (dims + 2 - a.dim())], b[(None,) * (dims + 2 - b.dim())]
    p, q = a.shape[:dims], b.shape[:dims]
    shared = [d for d in range(dims) if p[d] == q[d]]
    only_a = [d for d in range(dims) if p[d] != q[d] and q[d] == 1]
    only_b = [d for d in range(dims) if p[d] != q[d] and q[d] != 1]
    s, x, y = [p[d] for d in shared], [p[d] for d in only_a], [q[d] for d in only_b]
    m, k, n = a.shape[-2], b.shape[-2], b.shape[-1]
    left = a.permute(*shared, *only_b, *only_a, -2, -1).reshape(math.prod(s), math.prod(x) * m, k)
    right = b.permute(*shared, *only_a, -2, *only_b, -1).reshape(math.prod(s), k, math.prod(y) * n)
    product = torch.bmm(left, right).view(*s, *x, m, *y, n)
    now = [*shared, *only_a, dims, *only_b, dims + 1]
    return product.permute([now.index(d) for d in range(dims + 2)])


# %% mistake: minus_one_of_nothing
# `reshape` with a `-1` works out that size by division. Where a tensor is empty there is nothing to
# divide by, and it raises. Compute every size.
def broadcast_matmul(a, b):
    dims = max(a.dim(), b.dim()) - 2
    a, b = a[(None,) * (dims + 2 - a.dim())], b[(None,) * (dims + 2 - b.dim())]
    p, q = a.shape[:dims], b.shape[:dims]
    if a.shape[-1] != b.shape[-2] or any(x != y and 1 not in (x, y) for x, y in zip(p, q)):
        raise ValueError("sizes")
    shared = [d for d in range(dims) if p[d] == q[d]]
    only_a = [d for d in range(dims) if p[d] != q[d] and q[d] == 1]
    only_b = [d for d in range(dims) if p[d] != q[d] and q[d] != 1]
    s, x, y = [p[d] for d in shared], [p[d] for d in only_a], [q[d] for d in only_b]
    m, k, n = a.shape[-2], b.shape[-2], b.shape[-1]
    left = a.permute(*shared, *only_b, *only_a, -2, -1).reshape(math.prod(s), -1, k)
    right = b.permute(*shared, *only_a, -2, *only_b, -1).reshape(math.prod(s), k, -1)
    product = torch.bmm(left, right).view(*s, *x, m, *y, n)
    now = [*shared, *only_a, dims, *only_b, dims + 1]
    return product.permute([now.index(d) for d in range(dims + 2)])


# %% mistake: the_larger_has_it
# Where the sizes of a batch dimension differ, you give it to the operand that has more. A 1 meets a
# 0 as well, and 0 is what the result has: it belongs to the operand that is *not* 1.
def broadcast_matmul(a, b):
    dims = max(a.dim(), b.dim()) - 2
    a, b = a[(None,) * (dims + 2 - a.dim())], b[(None,) * (dims + 2 - b.dim())]
    p, q = a.shape[:dims], b.shape[:dims]
    if a.shape[-1] != b.shape[-2] or any(x != y and 1 not in (x, y) for x, y in zip(p, q)):
        raise ValueError("sizes")
    shared = [d for d in range(dims) if p[d] == q[d]]
    only_a = [d for d in range(dims) if p[d] > q[d]]
    only_b = [d for d in range(dims) if p[d] < q[d]]
    s, x, y = [p[d] for d in shared], [p[d] for d in only_a], [q[d] for d in only_b]
    m, k, n = a.shape[-2], b.shape[-2], b.shape[-1]
    left = a.permute(*shared, *only_b, *only_a, -2, -1).reshape(math.prod(s), math.prod(x) * m, k)
    right = b.permute(*shared, *only_a, -2, *only_b, -1).reshape(math.prod(s), k, math.prod(y) * n)
    product = torch.bmm(left, right).view(*s, *x, m, *y, n)
    now = [*shared, *only_a, dims, *only_b, dims + 1]
    return product.permute([now.index(d) for d in range(dims + 2)])


# %% alternate: moves_one_dimension_at_a_time
# Sorts by kind with movedim, and undoes the moves with the inverse permutation by argsort.
def broadcast_matmul(a, b):
    rank = max(a.ndim, b.ndim)
    a = a.reshape((1,) * (rank - a.ndim) + a.shape)
    b = b.reshape((1,) * (rank - b.ndim) + b.shape)
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    kinds = {"both": [], "rows": [], "columns": []}
    for dim in range(rank - 2):
        same = a.shape[dim] == b.shape[dim]
        kinds["both" if same else "rows" if b.shape[dim] == 1 else "columns"].append(dim)
    both, rows, columns = kinds.values()
    m, n = rank - 2, rank - 1
    x = a.permute(both + columns + rows + [m, n]).flatten(len(both), -2)
    y = b.permute(both + rows + [m] + columns + [n]).flatten(len(both) + len(rows) + 1, -1)
    y = y.reshape([a.shape[d] for d in both] + [b.shape[-2], y.shape[-1]])
    count = math.prod(a.shape[d] for d in both)
    z = torch.bmm(x.reshape(count, *x.shape[-2:]), y.reshape(count, *y.shape[-2:]))
    order = both + rows + [m] + columns + [n]
    full = [*batch, a.shape[-2], b.shape[-1]]
    return z.reshape([full[d] for d in order]).permute(torch.tensor(order).argsort().tolist())


# %% alternate: mm_where_nothing_is_shared
# Without a shared dimension it is one mm; otherwise bmm computes the transposed product.
def broadcast_matmul(a, b):
    dims = max(a.dim(), b.dim())
    while a.dim() < dims:
        a = a.unsqueeze(0)
    while b.dim() < dims:
        b = b.unsqueeze(0)
    torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shared, only_a, only_b = [], [], []
    for d, (p, q) in enumerate(zip(a.shape[:-2], b.shape[:-2], strict=True)):
        (shared if p == q else only_a if q == 1 else only_b).append(d)
    s = [a.shape[d] for d in shared]
    x, y = (
        [a.shape[d] for d in only_a] + [a.shape[-2]],
        [b.shape[d] for d in only_b] + [b.shape[-1]],
    )
    a = a.permute(*shared, *only_b, *only_a, -2, -1)
    b = b.permute(*shared, *only_a, *only_b, -1, -2)
    a = a.reshape(math.prod(s), math.prod(x), a.shape[-1])
    b = b.reshape(math.prod(s), math.prod(y), b.shape[-1])
    z = torch.mm(a[0], b[0].t())[None] if s == [] else torch.bmm(b, a.mT).mT
    z = z.unflatten(2, y).unflatten(1, x).unflatten(0, s or [1])
    z = z if s else z[0]
    now = [*shared, *only_a, dims - 2, *only_b, dims - 1]
    return z.permute([now.index(d) for d in range(dims)])
