# %% mistake: reinterprets
# The shape is right, the numbers are not. You read the row of numbers as if heads came before
# positions. Split the hidden dimension first, then move the heads with `transpose`.
def split_heads(x, heads):
    if x.shape[-1] % heads:
        raise ValueError("uneven")
    return x.reshape(*x.shape[:-2], heads, x.shape[-2], x.shape[-1] // heads)


def merge_heads(y):
    return y.transpose(-3, -2).flatten(-2)


# %% mistake: reinterprets_on_the_way_back
# You merged without moving the heads back. A head's rows then follow one another, where the numbers
# of one position should stand side by side: `transpose(-3, -2)` first.
def split_heads(x, heads):
    if x.shape[-1] % heads:
        raise ValueError("uneven")
    return x.unflatten(-1, (heads, -1)).transpose(-3, -2)


def merge_heads(y):
    return y.reshape(*y.shape[:-3], y.shape[-2], y.shape[-3] * y.shape[-1])


# %% mistake: heads_inside
# You split `hidden` into `(size, heads)`, so that each head takes every `heads`-th number. A head
# is a run of neighbours: the outer part of the split counts the heads.
def split_heads(x, heads):
    if x.shape[-1] % heads:
        raise ValueError("uneven")
    return x.unflatten(-1, (x.shape[-1] // heads, heads)).movedim(-1, -3)


def merge_heads(y):
    return y.movedim(-3, -1).flatten(-2)


# %% mistake: contiguous_after_the_split
# You copied the heads, with `contiguous()` or by cutting them out and stacking them. A transposed
# tensor is as good as any other for what follows: leave it a view.
def split_heads(x, heads):
    if x.shape[-1] % heads:
        raise ValueError("uneven")
    return x.unflatten(-1, (heads, -1)).transpose(-3, -2).contiguous()


def merge_heads(y):
    return y.transpose(-3, -2).flatten(-2)


# %% mistake: contiguous_before_the_merge
# You made the heads contiguous before you moved them. `merge_heads` copies then where it need not,
# and twice where once would do. Let `reshape` or `flatten` decide.
def split_heads(x, heads):
    if x.shape[-1] % heads:
        raise ValueError("uneven")
    return x.unflatten(-1, (heads, -1)).transpose(-3, -2)


def merge_heads(y):
    return y.contiguous().transpose(-3, -2).flatten(-2)


# %% mistake: views_only_the_contiguous
# You make `x` contiguous first, which copies whenever it is not. To split one dimension in two is
# possible for every layout: drop the `contiguous()`.
def split_heads(x, heads):
    if x.shape[-1] % heads:
        raise ValueError("uneven")
    x = x.contiguous()
    return x.view(*x.shape[:-1], heads, x.shape[-1] // heads).transpose(-3, -2)


def merge_heads(y):
    return y.transpose(-3, -2).flatten(-2)


# %% mistake: three_dimensions_only
# You named the dimensions from the front, which is right for `(batch, seq, hidden)` alone. Count
# from the end: there may be no batch, or several.
def split_heads(x, heads):
    if x.shape[-1] % heads:
        raise ValueError("uneven")
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


def merge_heads(y):
    return y.transpose(1, 2).flatten(2)


# %% mistake: drops_the_rest
# Where `heads` does not divide `hidden` you drop what is left over. The exercise asks for a
# `ValueError`: a head that is cut off is a bug that nobody notices.
def split_heads(x, heads):
    size = x.shape[-1] // heads
    return x[..., : size * heads].unflatten(-1, (heads, size)).transpose(-3, -2)


def merge_heads(y):
    return y.transpose(-3, -2).flatten(-2)


# %% mistake: asserts
# An uneven number of heads ends in an `AssertionError` or a `RuntimeError`. Asked for is a
# `ValueError`, which a caller can tell from a bug in your code.
def split_heads(x, heads):
    assert x.shape[-1] % heads == 0
    return x.unflatten(-1, (heads, -1)).transpose(-3, -2)


def merge_heads(y):
    return y.transpose(-3, -2).flatten(-2)


# %% alternate: as_strided
# All sizes and strides written down.
def split_heads(x, heads):
    size, rest = divmod(x.shape[-1], heads)
    if rest:
        raise ValueError(f"{heads} heads?")
    *lead, seq, hidden = x.stride()
    return x.as_strided(
        (*x.shape[:-2], heads, x.shape[-2], size),
        (*lead, hidden * size, seq, hidden),
        x.storage_offset(),
    )


def merge_heads(y):
    *lead, heads, seq, size = y.shape
    return y.movedim(-3, -2).reshape(*lead, seq, heads * size)


# %% alternate: view_and_permute
# `view` splits, `permute` moves.
def split_heads(x, heads):
    if x.size(-1) % heads != 0:
        raise ValueError("heads must divide hidden")
    y = x.view(*x.shape[:-1], heads, x.size(-1) // heads)
    n = y.dim()
    return y.permute(*range(n - 3), n - 2, n - 3, n - 1)


def merge_heads(y):
    y = y.swapaxes(-2, -3)
    try:
        return y.view(*y.shape[:-2], y.shape[-2] * y.shape[-1])
    except RuntimeError:
        return y.contiguous().view(*y.shape[:-2], y.shape[-2] * y.shape[-1])
