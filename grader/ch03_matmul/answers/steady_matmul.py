# %% blocked: one_mm_per_row
# Each row is multiplied by itself, so no other row can change it. But the order of the terms is
# still a secret of `mm`. The exercise asks for a kernel of your own.
def steady_matmul(a, b):
    return torch.cat([a[i : i + 1] @ b for i in range(a.shape[0])])


# %% blocked: in_float64
# In float64 hardly anything is rounded, and the order hardly shows. It is not the history that was
# asked for.
def steady_matmul(a, b):
    total = torch.zeros(a.shape[0], b.shape[1], dtype=torch.float64)
    for k in range(a.shape[1]):
        total = total + a[:, k, None].double() * b[k].double()
    return total.to(a.dtype)


# %% mistake: lets_sum_decide
# You multiply everything and call `sum`. It keeps several partial sums and joins them at the end,
# so the terms are not added first to last. Keep the sum yourself and add one term at a time.
def steady_matmul(a, b):
    return (a.float()[:, :, None] * b.float()).sum(1).to(a.dtype)


# %% mistake: accumulates_as_given
# You add in the dtype of the operands. A bfloat16 sum of ones stops at 256, a float16 sum at 2,048
# and it cannot pass 65,504. Convert the operands to float32 first, and the sum back last.
def steady_matmul(a, b):
    total = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype)
    for k in range(a.shape[1]):
        total = total + a[:, k, None] * b[k]
    return total


# %% mistake: rounds_each_product
# You add in float32, but multiply in the dtype of the operands, and so round every product to
# sixteen bits. Convert before you multiply.
def steady_matmul(a, b):
    total = torch.zeros(a.shape[0], b.shape[1])
    for k in range(a.shape[1]):
        total = total + (a[:, k, None] * b[k]).float()
    return total.to(a.dtype)


# %% mistake: rounds_each_sum
# You round the sum to the dtype of the operands after every term. It is rounded once, at the end.
def steady_matmul(a, b):
    total = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype)
    for k in range(a.shape[1]):
        total = (total.float() + a[:, k, None].float() * b[k].float()).to(a.dtype)
    return total


# %% mistake: last_to_first
# You add from the last term to the first. Every row has one history, but not the one asked for.
def steady_matmul(a, b):
    total = torch.zeros(a.shape[0], b.shape[1])
    for k in reversed(range(a.shape[1])):
        total = total + a[:, k, None].float() * b[k].float()
    return total.to(a.dtype)


# %% mistake: two_sums
# You sum the even and the odd terms apart and join the two. Good for speed, and common in kernels;
# but the terms are not added one after the other to one sum.
def steady_matmul(a, b):
    even, odd = torch.zeros(a.shape[0], b.shape[1]), torch.zeros(a.shape[0], b.shape[1])
    for k in range(0, a.shape[1], 2):
        even = even + a[:, k, None].float() * b[k].float()
    for k in range(1, a.shape[1], 2):
        odd = odd + a[:, k, None].float() * b[k].float()
    return (even + odd).to(a.dtype)


# %% mistake: another_road_for_few_rows
# With few rows you cut the sum in two halves, to have more to do at a time. That is what real
# kernels do, and why they are not batch-invariant: a row that comes alone gets another history.
def steady_matmul(a, b):
    def summed(steps):
        total = torch.zeros(a.shape[0], b.shape[1])
        for k in steps:
            total = total + a[:, k, None].float() * b[k].float()
        return total

    size = a.shape[1]
    if a.shape[0] >= 4:
        return summed(range(size)).to(a.dtype)
    return (summed(range(size // 2)) + summed(range(size // 2, size))).to(a.dtype)


# %% alternate: products_first
# All products at once, then a loop of additions for each row of the result.
def steady_matmul(a, b):
    products = a.float()[:, :, None] * b.float()
    result = torch.zeros(a.shape[0], b.shape[1])
    for row, terms in zip(result, products):
        for term in terms:
            row += term
    return result.type(a.dtype)


# %% alternate: in_place_and_unbound
# Adds in place, to columns taken by unbind.
def steady_matmul(a, b):
    x, y = a.to(torch.float32), b.to(torch.float32)
    acc = torch.zeros((x.size(0), y.size(1)), dtype=torch.float32)
    for column, row in zip(x.unbind(1), y.unbind(0)):
        acc.add_(torch.outer(column, row))
    return acc.to(b.dtype)
