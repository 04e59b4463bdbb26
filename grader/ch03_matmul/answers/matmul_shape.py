# %% blocked: asks_matmul
# You multiplied two tensors and looked at the result. Work out the shape from the two shapes.
def matmul_shape(a, b):
    try:
        return tuple((torch.empty(a, device="meta") @ torch.empty(b, device="meta")).shape)
    except RuntimeError as error:
        raise ValueError(str(error)) from None


# %% blocked: asks_broadcast_shapes
# `torch.broadcast_shapes` knows the third rule. It is one of the three that you are to write.
def matmul_shape(a, b):
    if len(a) < 2 or len(b) < 2 or a[-1] != b[-2]:
        raise ValueError
    return (*torch.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])


# %% mistake: vectors_keep_their_one
# You promoted vectors and left the added 1 in the result. It is taken away again: a vector times
# a matrix is a vector.
def matmul_shape(a, b):
    if not a or not b:
        raise ValueError
    a = (1, *a) if len(a) == 1 else a
    b = (*b, 1) if len(b) == 1 else b
    if a[-1] != b[-2]:
        raise ValueError
    p, q = a[:-2], b[:-2]
    longer = max(len(p), len(q))
    p, q = (1,) * (longer - len(p)) + p, (1,) * (longer - len(q)) + q
    if any(x != y and 1 not in (x, y) for x, y in zip(p, q)):
        raise ValueError
    return (*[y if x == 1 else x for x, y in zip(p, q)], a[-2], b[-1])


# %% mistake: column_vector_is_a_row
# You put the 1 in front of both vectors. On the right a vector becomes a *column*: the 1 goes
# behind its size.
def matmul_shape(a, b):
    if not a or not b:
        raise ValueError
    row, column = len(a) == 1, len(b) == 1
    a = (1, *a) if row else a
    b = (1, *b) if column else b
    if a[-1] != b[-2]:
        raise ValueError
    p, q = a[:-2], b[:-2]
    longer = max(len(p), len(q))
    p, q = (1,) * (longer - len(p)) + p, (1,) * (longer - len(q)) + q
    if any(x != y and 1 not in (x, y) for x, y in zip(p, q)):
        raise ValueError
    batch = [y if x == 1 else x for x, y in zip(p, q)]
    return (*batch, *([] if row else [a[-2]]), *([] if column else [b[-1]]))


# %% mistake: removes_every_one
# You removed every 1 of the result when an operand was a vector. Only the 1 that you added goes;
# a 1 that the other operand brought along stays.
def matmul_shape(a, b):
    if not a or not b:
        raise ValueError
    vector = 1 in (len(a), len(b))
    a = (1, *a) if len(a) == 1 else a
    b = (*b, 1) if len(b) == 1 else b
    if a[-1] != b[-2]:
        raise ValueError
    p, q = a[:-2], b[:-2]
    longer = max(len(p), len(q))
    p, q = (1,) * (longer - len(p)) + p, (1,) * (longer - len(q)) + q
    if any(x != y and 1 not in (x, y) for x, y in zip(p, q)):
        raise ValueError
    shape = (*[y if x == 1 else x for x, y in zip(p, q)], a[-2], b[-1])
    return tuple(size for size in shape if size != 1) if vector else shape


# %% mistake: takes_the_larger
# For each pair of batch dimensions you took the larger. A 1 gives way to whatever stands opposite,
# and that can be 0: the result of 1 and 0 is 0.
def matmul_shape(a, b):
    if not a or not b:
        raise ValueError
    row, column = len(a) == 1, len(b) == 1
    a = (1, *a) if row else a
    b = (*b, 1) if column else b
    if a[-1] != b[-2]:
        raise ValueError
    p, q = a[:-2], b[:-2]
    longer = max(len(p), len(q))
    p, q = (1,) * (longer - len(p)) + p, (1,) * (longer - len(q)) + q
    if any(x != y and 1 not in (x, y) for x, y in zip(p, q)):
        raise ValueError
    return (*map(max, p, q), *([] if row else [a[-2]]), *([] if column else [b[-1]]))


# %% mistake: inner_sizes_broadcast
# You let the inner sizes broadcast: 1 and 3 went through. Only batch dimensions do that. The two
# sizes that are summed over must be equal.
def matmul_shape(a, b):
    if not a or not b:
        raise ValueError
    row, column = len(a) == 1, len(b) == 1
    a = (1, *a) if row else a
    b = (*b, 1) if column else b
    if a[-1] != b[-2] and 1 not in (a[-1], b[-2]):
        raise ValueError
    p, q = a[:-2], b[:-2]
    longer = max(len(p), len(q))
    p, q = (1,) * (longer - len(p)) + p, (1,) * (longer - len(q)) + q
    if any(x != y and 1 not in (x, y) for x, y in zip(p, q)):
        raise ValueError
    batch = [y if x == 1 else x for x, y in zip(p, q)]
    return (*batch, *([] if row else [a[-2]]), *([] if column else [b[-1]]))


# %% mistake: aligned_on_the_left
# You aligned the batch dimensions on the left. Broadcasting aligns on the right: what is missing
# is missing in front.
def matmul_shape(a, b):
    if not a or not b:
        raise ValueError
    row, column = len(a) == 1, len(b) == 1
    a = (1, *a) if row else a
    b = (*b, 1) if column else b
    if a[-1] != b[-2]:
        raise ValueError
    p, q = a[:-2], b[:-2]
    longer = max(len(p), len(q))
    p, q = p + (1,) * (longer - len(p)), q + (1,) * (longer - len(q))
    if any(x != y and 1 not in (x, y) for x, y in zip(p, q)):
        raise ValueError
    batch = [y if x == 1 else x for x, y in zip(p, q)]
    return (*batch, *([] if row else [a[-2]]), *([] if column else [b[-1]]))


# %% mistake: like_bmm
# You ask for equal batch dimensions, as `bmm` does. `matmul` broadcasts them.
def matmul_shape(a, b):
    if not a or not b:
        raise ValueError
    row, column = len(a) == 1, len(b) == 1
    a = (1, *a) if row else a
    b = (*b, 1) if column else b
    if a[-1] != b[-2]:
        raise ValueError
    p, q = a[:-2], b[:-2]
    if p and q and p != q:
        raise ValueError
    return (*(p or q), *([] if row else [a[-2]]), *([] if column else [b[-1]]))


# %% mistake: batches_unchecked
# You never compare the batch dimensions. Two that differ, and of which none is 1, do not fit.
def matmul_shape(a, b):
    if not a or not b:
        raise ValueError
    row, column = len(a) == 1, len(b) == 1
    a = (1, *a) if row else a
    b = (*b, 1) if column else b
    if a[-1] != b[-2]:
        raise ValueError
    p, q = a[:-2], b[:-2]
    longer = max(len(p), len(q))
    p, q = (1,) * (longer - len(p)) + p, (1,) * (longer - len(q)) + q
    batch = [y if x == 1 else x for x, y in zip(p, q)]
    return (*batch, *([] if row else [a[-2]]), *([] if column else [b[-1]]))


# %% alternate: from_the_back
# Goes through the batch dimensions from the last to the first, with zip_longest.
def matmul_shape(a, b):
    from itertools import zip_longest

    match len(a), len(b):
        case (0, _) | (_, 0):
            raise ValueError("a scalar")
        case 1, 1:
            tail, inner = (), b[0]
        case 1, _:
            tail, inner = (b[-1],), b[-2]
        case _, 1:
            tail, inner = (a[-2],), b[0]
        case _:
            tail, inner = (a[-2], b[-1]), b[-2]
    if inner != a[-1]:
        raise ValueError("inner sizes differ")
    backwards = []
    for sizes in zip_longest(reversed(a[:-2]), reversed(b[:-2]), fillvalue=1):
        others = set(sizes) - {1}
        if len(others) > 1:
            raise ValueError("batch sizes differ")
        backwards.append(others.pop() if others else 1)
    return tuple(backwards[::-1]) + tail


# %% alternate: dimension_by_dimension
# Looks up one dimension of the result at a time, and takes ones away at the end.
def matmul_shape(a, b):
    if min(len(a), len(b)) == 0:
        raise ValueError("at least one dimension")
    left = a if len(a) >= 2 else (1,) + tuple(a)
    right = b if len(b) >= 2 else tuple(b) + (1,)
    if left[-1] != right[-2]:
        raise ValueError("no product")
    rank = max(len(left), len(right))
    shape = []
    for dim in range(-rank, -2):
        p = left[dim] if -dim <= len(left) else 1
        q = right[dim] if -dim <= len(right) else 1
        if p == 1:
            shape.append(q)
        elif q == 1 or p == q:
            shape.append(p)
        else:
            raise ValueError("no broadcasting")
    if len(a) >= 2:
        shape.append(left[-2])
    if len(b) >= 2:
        shape.append(right[-1])
    return tuple(shape)
