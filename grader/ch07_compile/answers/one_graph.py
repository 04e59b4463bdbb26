# %% mistake: as_it_was
# The function still leaves the graph: `.item()`, an `if` on data and a selection by a mask each
# break it. With `fullgraph=True` that is an error.
def one_graph(x, w, limit):
    size = x.abs().max().item()
    if size > limit:
        x = (x @ w) / size
    kept = x[x > 0]
    return x - kept.mean(), torch.tensor(size, dtype=x.dtype)


# %% mistake: gradient_through_the_size
# A gradient flows through your size. In the original `.item()` made it a Python number, which is a
# constant for `backward`: detach it.
def one_graph(x, w, limit):
    size = x.abs().max()
    x = torch.cond(
        size > limit, lambda: (x @ w) / size, lambda: x.clone(memory_format=torch.contiguous_format)
    )
    positive = x > 0
    mean = torch.where(positive, x, 0).sum() / positive.sum()
    return x - mean, size.detach()


# %% mistake: size_keeps_grad
# The size that you return requires grad. It took the place of a Python number: return it detached.
def one_graph(x, w, limit):
    size = x.abs().max()
    fixed = size.detach()
    x = torch.cond(
        fixed > limit,
        lambda: (x @ w) / fixed,
        lambda: x.clone(memory_format=torch.contiguous_format),
    )
    positive = x > 0
    mean = torch.where(positive, x, 0).sum() / positive.sum()
    return x - mean, size


# %% mistake: both_arms
# You compute both ways and choose. The product is computed in every call, needed or not.
# `torch.cond` runs one arm.
def one_graph(x, w, limit):
    size = x.detach().abs().max()
    x = torch.where(size > limit, (x @ w) / size, x)
    positive = x > 0
    mean = torch.where(positive, x, 0).sum() / positive.sum()
    return x - mean, size


# %% mistake: mean_over_all
# You divide by the number of all elements. The mean is over the positive ones: count them.
def one_graph(x, w, limit):
    size = x.detach().abs().max()
    x = torch.cond(
        size > limit, lambda: (x @ w) / size, lambda: x.clone(memory_format=torch.contiguous_format)
    )
    positive = x > 0
    return x - torch.where(positive, x, 0).mean(), size


# %% mistake: times_the_mask
# You multiply by the mask. Where an element is infinite and does not count, that is infinity times
# zero, a NaN. Choose with `torch.where`.
def one_graph(x, w, limit):
    size = x.detach().abs().max()
    x = torch.cond(
        size > limit, lambda: (x @ w) / size, lambda: x.clone(memory_format=torch.contiguous_format)
    )
    positive = x > 0
    return x - (x * positive).sum() / positive.sum(), size


# %% mistake: never_divides_by_zero
# Where nothing is positive you answer with a number: the division is protected, or its NaN replaced. The
# mean of nothing is a NaN, in the original and so in yours.
def one_graph(x, w, limit):
    size = x.detach().abs().max()
    x = torch.cond(
        size > limit, lambda: (x @ w) / size, lambda: x.clone(memory_format=torch.contiguous_format)
    )
    positive = x > 0
    mean = torch.where(positive, x, 0).sum() / positive.sum().clamp(min=1)
    return x - mean, size


# %% mistake: keeps_strides
# Your arm returns a copy that keeps the strides of `x`. Where `x` is transposed, the arms do not
# agree, and `torch.cond` refuses: make the copy contiguous.
def one_graph(x, w, limit):
    size = x.detach().abs().max()
    x = torch.cond(size > limit, lambda: (x @ w) / size, lambda: x.clone())
    positive = x > 0
    mean = torch.where(positive, x, 0).sum() / positive.sum()
    return x - mean, size


# %% mistake: reaches_the_limit
# You take the product where size and limit are equal as well. The original asks for more than the
# limit.
def one_graph(x, w, limit):
    size = x.detach().abs().max()
    x = torch.cond(
        size >= limit,
        lambda: (x @ w) / size,
        lambda: x.clone(memory_format=torch.contiguous_format),
    )
    positive = x > 0
    mean = torch.where(positive, x, 0).sum() / positive.sum()
    return x - mean, size


# %% mistake: size_afterwards
# You take the size after the product. It is the size of the input.
def one_graph(x, w, limit):
    size = x.detach().abs().max()
    x = torch.cond(
        size > limit, lambda: (x @ w) / size, lambda: x.clone(memory_format=torch.contiguous_format)
    )
    positive = x > 0
    mean = torch.where(positive, x, 0).sum() / positive.sum()
    return x - mean, x.detach().abs().max()


# %% mistake: detaches_x
# You detach `x` itself, and nothing of it is left for `backward`. Only the size is a constant.
def one_graph(x, w, limit):
    x = x.detach()
    size = x.abs().max()
    x = torch.cond(
        size > limit, lambda: (x @ w) / size, lambda: x.clone(memory_format=torch.contiguous_format)
    )
    positive = x > 0
    mean = torch.where(positive, x, 0).sum() / positive.sum()
    return x - mean, size


# %% alternate: nansum
# Marks what does not count by a NaN, and lets `nanmean` leave it out; where `x` has NaN, they are
# not positive either.
def one_graph(x, w, limit):
    size = x.detach().abs().max()
    x = torch.cond(
        size > limit, lambda x, w, s: (x @ w) / s, lambda x, w, s: x.contiguous() + 0, (x, w, size)
    )
    return x - x.masked_fill(~(x > 0), torch.nan).nanmean(), size


# %% alternate: scaled_arms
# Arms that are named functions with operands; the norm of largest value; the mean by a product with
# weights.
def one_graph(x, w, limit):
    def multiplied(x, w, size):
        return torch.mm(x, w).div(size)

    def untouched(x, w, size):
        return torch.empty(x.shape, dtype=x.dtype).copy_(x)

    size = torch.linalg.vector_norm(x.detach(), ord=torch.inf)
    y = torch.cond(torch.gt(size, limit), multiplied, untouched, (x, w, size))
    count = torch.count_nonzero(y > 0)
    return y - torch.relu(torch.where(y.isnan(), 0, y)).sum() / count, size
