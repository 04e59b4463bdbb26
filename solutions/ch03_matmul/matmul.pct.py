# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] chapter="ch03_matmul"
# title: Matmul
# summary: >-
#   Nearly all the time that a network computes, it multiplies matrices. PyTorch has many names for
#   that, and two kernels that do most of the work: one matrix by one matrix, and a batch of them.
#   The rest (broadcasting, einsum, linear layers, convolutions, attention) is largely a matter of
#   views around those two. In this chapter you build the views, and you measure what they cost: which
#   operators ran, which bytes were copied, how many multiplications were spent.

# %% [markdown]
# ## What to bring
#
# You know shapes, strides and broadcasting, from chapter 2. You know that a float has a finite
# number of bits, from chapter 1. You need nothing else.

# %%
import math
import string
import warnings

import torch

from grader import grade, predict
from grader.instruments.flops import watch_flops
from grader.instruments.memory import watch_memory
from grader.instruments.ops import watch_ops

# %% [markdown]
# ## The family
#
# Five functions of PyTorch multiply and sum. They differ in what they accept:

# %%
pairs = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (1, 3, 4)),
]
functions = [torch.dot, torch.mv, torch.mm, torch.bmm, torch.matmul]
print(" " * 24 + "".join(f"{function.__name__:>12}" for function in functions))
for a_shape, b_shape in pairs:
    row = []
    for function in functions:
        try:
            row.append(str(tuple(function(torch.ones(a_shape), torch.ones(b_shape)).shape)))
        except RuntimeError:
            row.append("-")
    print(f"{a_shape!s:>11} {b_shape!s:<11} " + "".join(f"{cell:>12}" for cell in row))

# %% [markdown]
# `dot` takes two vectors, `mv` a matrix and a vector, `mm` two matrices, `bmm` two batches of equal
# size. None of the four does anything else. `matmul` takes all of it, and `a @ b` is `matmul`
# written as an operator. `einsum`, a seventh name, takes an equation that says what to do; you
# build it further down.
#
# What `dot` returns is shown as `()`: a tensor without dimensions, which is not a number of
# Python's. `item()` makes it one. And `dot` of two matrices is an error, where NumPy's `dot`
# multiplies them.

# %%
product = torch.dot(torch.ones(3), torch.ones(3))
print(product, type(product).__name__, product.item())

# %% [markdown] exercise="mm_by_hand"
# title: Multiply matrices by hand
# minutes: 20
# difficulty: 1
# points: 6
# prerequisites: []
# teaches: >-
#   that a matrix product is an elementwise product and a sum, and what that costs in memory.
# leaves out: the order in which floats are summed, to which we come back.
# off limits: ["aten:mm", "aten:bmm", "aten:mv", "aten:dot", "aten:vdot", "aten:addmm", "aten:addmv", "aten:baddbmm", "aten:addbmm", "aten:linear", "aten:_int_mm", "aten:convolution", torch.einsum, "import:numpy"]

# %% [markdown]
# Element $(i, j)$ of a product is row $i$ of the left matrix times column $j$ of the right one,
# element by element, and summed:
#
# $$C_{ij} = \sum_k A_{ik} B_{kj}$$
#
# Three letters, so three nested loops. Or none: give each letter a dimension of its own, let
# broadcasting form every product $A_{ik} B_{kj}$, and sum over $k$.
#
# | | $i$ | $k$ | $j$ |
# |---|---|---|---|
# | $A$ | m | k | 1 |
# | $B$ | 1 | k | n |
# | all products | m | k | n |
#
# It is also the most wasteful way. All those products are there at the same time, before the sum
# makes $C$ of them. `watch_memory` weighs what operators allocate:

# %%
x = torch.ones(64, 64)
with watch_memory() as memory:
    x @ x
print("mm needs    ", memory.new_bytes, "new bytes: those of the result")

# %% [markdown]
# **Predict.** All products of two such matrices, as a tensor of `float32`: how many bytes?

# %%
with watch_memory() as memory:
    x[:, :, None] * x[None]
predict(..., lambda: memory.new_bytes)

# %% [markdown]
# A kernel such as `mm` never writes the products down. It adds each to a sum in a register.
#
# **Write `mm_by_hand(a, b)`.** `a` is a matrix of shape `(m, k)`, `b` one of shape `(k, n)`, in any
# layout and of one dtype, floats or whole numbers. Any of the sizes may be 0; a sum of nothing is
# 0. Return the product, of shape `(m, n)` and of the same dtype. (A sum of whole numbers that leaves
# the range wraps around, as it does in `mm`.) Where the two `k` differ, raise a `ValueError`, or let
# an error of PyTorch through.
#
# All operators that multiply and sum are off limits. Multiplication and `sum` are not.
#
# <details><summary>Hint 1: one dimension per letter</summary>
#
# Indexing with `None` adds a dimension of size 1: `a[:, :, None]` has shape `(m, k, 1)`. Which
# shape must `b` have, so that the two broadcast to `(m, k, n)`?
#
# </details>
# <details><summary>Hint 2: whole numbers</summary>
#
# `sum` of `int8` numbers is an `int64`. Convert the result back, or tell `sum` which dtype it is
# to have.
#
# </details>
# <details><summary>Hint 3: broadcasting is too kind</summary>
#
# A matrix of one column times a matrix of three rows is no product. But 1 and 3 broadcast, and
# nobody complains. Compare the two sizes yourself.
#
# </details>


# %% solution="mm_by_hand"
def mm_by_hand(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product of two matrices, by multiplying and summing.

    a: (m, k); b: (k, n), of the same dtype
    returns: (m, n), of that dtype
    """
    ### BEGIN SOLUTION
    columns, rows = a.shape[1], b.shape[0]
    if columns != rows:
        raise ValueError(f"{columns} columns do not meet {rows} rows")
    products = a[:, :, None] * b[None]  # (m, k, n)
    return products.sum(dim=1, dtype=a.dtype)
    ### END SOLUTION


# %% grade="mm_by_hand"
grade("mm_by_hand")

# %% [markdown] exercise="matmul_shape"
# title: Foresee the shape of a product
# minutes: 25
# difficulty: 2
# points: 6
# prerequisites: []
# teaches: >-
#   the three rules by which matmul takes operands of any rank, and what it refuses.
# leaves out: dtypes, and how the product is computed.
# off limits: [torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.Tensor.__rmatmul__, torch.linalg.matmul, torch.ops.aten.matmul, torch._VF.matmul, torch.broadcast_shapes, torch.broadcast_tensors, torch.Tensor.expand, "import:numpy"]

# %% [markdown]
# It is written in many places that `matmul` takes tensors of one to four dimensions. Try six and
# five:

# %%
left, right = torch.zeros(2, 1, 3, 1, 5, 6), torch.zeros(7, 1, 4, 6, 2)
print(tuple((left @ right).shape))
print(tuple((torch.zeros(2, 3, 4, 5, 6) @ torch.zeros(6, 7)).shape))

# %% [markdown]
# There is no upper limit. The rules are three:
#
# 1. **Promote.** A vector on the left becomes a matrix of one row: a 1 goes in *front* of its
#    shape. A vector on the right becomes a matrix of one column: a 1 goes *behind*. The 1 that was
#    added is taken away from the result. A tensor of no dimensions is refused.
# 2. **Multiply.** The last two dimensions are matrices, $(m, k)$ and $(k, n)$, and make $(m, n)$.
#    The two $k$ must be equal. They do not broadcast: 1 and 3 is an error.
# 3. **Broadcast.** What stands before the last two dimensions are *batch* dimensions. They are
#    aligned on the right. Two of them fit if they are equal, or if one is 1, or missing.
#
# Rule 1 comes first, and that decides some cases that look alike. Here is a vector, and a matrix
# that has one row:

# %%
batch = torch.zeros(5, 3, 4)
print(tuple((torch.zeros(3) @ batch).shape))
print(tuple((torch.zeros(1, 3) @ batch).shape))
print(tuple((torch.zeros(5, 3, 4) @ torch.zeros(4)).shape))
print(tuple((torch.zeros(5, 3, 4) @ torch.zeros(4, 1)).shape))

# %% [markdown]
# **Predict.** A batch of shape `(4, 3, 4)` is multiplied by a vector of shape `(4,)`, which
# could be read as one number for each of the four matrices. What is the shape of the result?
# Write a tuple.

# %%
predict(..., lambda: tuple((torch.zeros(4, 3, 4) @ torch.zeros(4)).shape))

# %% [markdown]
# **Write `matmul_shape(a, b)`.** `a` and `b` are shapes: tuples of whole numbers, none negative.
# A size may be 0. Return the shape of `torch.matmul` for tensors of these shapes, as a tuple.
# Where `torch.matmul` refuses, raise a `ValueError`.
#
# Work it out with numbers alone. Multiplying two tensors and looking is off limits, and so are
# PyTorch's functions that broadcast.
#
# <details><summary>Hint 1: keep two answers apart</summary>
#
# Note at the beginning whether `a` is a vector, and whether `b` is. Then promote both, and go on
# as if there were only matrices. At the end the two notes say what to leave out.
#
# </details>
# <details><summary>Hint 2: align on the right</summary>
#
# Put ones in front of the shorter list of batch dimensions until both are equally long. Then go
# through them in pairs.
#
# </details>
# <details><summary>Hint 3: one is not small</summary>
#
# The rule for a pair is not "take the larger". Where one of them is 1, take the *other*: 1 and 0
# make 0. And 2 and 0 do not fit.
#
# </details>


# %% solution="matmul_shape"
def matmul_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of torch.matmul's result for operands of these shapes.

    raises: ValueError where torch.matmul refuses
    """
    ### BEGIN SOLUTION
    if not a or not b:
        raise ValueError("a product needs operands of at least one dimension")
    # Promote. What was added is remembered, and left out of the result.
    rows = a[-2:-1]  # () for a vector
    columns = b[-1:] if len(b) > 1 else ()
    inner_a, inner_b = a[-1], b[-2:][0]
    if inner_a != inner_b:
        raise ValueError(f"{inner_a} columns do not meet {inner_b} rows")

    batch_a, batch_b = a[:-2], b[:-2]
    longer = max(len(batch_a), len(batch_b))
    # Missing dimensions count as ones, in front.
    batch_a = (1,) * (longer - len(batch_a)) + batch_a
    batch_b = (1,) * (longer - len(batch_b)) + batch_b
    batch = []
    for p, q in zip(batch_a, batch_b, strict=True):
        if p != q and p != 1 and q != 1:
            raise ValueError(f"batch dimensions {p} and {q} do not fit")
        batch.append(q if p == 1 else p)
    return (*batch, *rows, *columns)
    ### END SOLUTION


# %% grade="matmul_shape"
grade("matmul_shape")

# %% [markdown]
# ## A vector, or a column?
#
# Rule 1 has a twin that has cost many people an afternoon. A model that multiplies by a *matrix* of
# one column returns a column, of shape `(4, 1)`. The targets are often a vector, `(4,)`. The
# prediction below is perfect:

# %%
features, weight = torch.arange(8.0).view(4, 2), torch.tensor([[0.5], [0.0]])
prediction, target = features @ weight, torch.tensor([0.0, 1.0, 2.0, 3.0])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    loss = torch.nn.functional.mse_loss(prediction, target)
print(prediction.flatten().tolist(), target.tolist())
print("loss", loss.item(), "and", len(caught), "warning")

# %% [markdown]
# **Predict.** What is the shape of `prediction - target`? Write a tuple.

# %%
predict(..., lambda: tuple((prediction - target).shape))

# %% [markdown]
# A loss of 2.5 where there is no error, because every prediction was compared with every target.
# Training goes on, and learns to predict the mean. All that PyTorch gives is a warning. Make the
# shapes equal before you compare: multiply by a vector of weights, or `squeeze(-1)`.

# %% [markdown] exercise="matmul"
# title: Fold everything into one product
# minutes: 40
# difficulty: 3
# points: 9
# prerequisites: [matmul_shape]
# teaches: >-
#   that matmul is views around one mm or one bmm, and when those views cost nothing.
# leaves out: gradients, for which torch.matmul folds once more.
# off limits: [torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.Tensor.__rmatmul__, torch.linalg.matmul, torch.ops.aten.matmul, torch._VF.matmul, torch.einsum, torch.tensordot, torch.inner, torch.Tensor.inner, torch.nn.functional.linear, torch.vmap, "import:numpy"]

# %% [markdown]
# Two kernels do most of the work: `mm` multiplies two matrices, `bmm` multiplies two batches of
# matrices, pair by pair. (For vectors there are `mv` and `dot`.) `matmul` has no kernel of its own.
# `watch_ops` lists the operators that really run:

# %%
for a_shape, b_shape in [
    ((3, 5), (5, 2)),
    ((4, 3, 5), (4, 5, 2)),
    ((4, 3, 5), (5, 2)),
    ((5,), (5, 2)),
]:
    a, b = torch.zeros(a_shape), torch.zeros(b_shape)
    with watch_ops() as ops:
        a @ b
    print(f"{a_shape!s:>9} @ {b_shape!s:<9}", " ".join(ops.names))

# %% [markdown]
# Some beliefs fall here.
#
# *`mm` is faster than `matmul`.* For two matrices both run one `mm` and nothing else. Called in
# turns, they took 8.65 and 8.64 microseconds where this was written. Timed one after the other, it
# was 141 and 42: whichever comes first pays for warming up.
#
# *For batches one needs `bmm`.* The second line is `matmul`, and it runs `bmm` for you, around
# views that copy nothing. `bmm` itself is stricter. It takes three dimensions, not two, and does
# not broadcast:

# %%
for a_shape, b_shape in [((3, 5), (5, 2)), ((4, 3, 5), (1, 5, 2))]:
    try:
        torch.bmm(torch.zeros(a_shape), torch.zeros(b_shape))
    except RuntimeError as error:
        print(str(error).split("\n")[0])

# %% [markdown]
# *A batch on the left means a batched product.* Look at the third line: `(4, 3, 5) @ (5, 2)` ran
# no `bmm`. All four matrices are multiplied by the same one. So their rows may just as well stand
# in one tall matrix of shape `(12, 5)`, and for a contiguous tensor that is a view. One large `mm`
# serves the processor better than four small products. This is what a linear layer does to a
# batch of sequences.
#
# **Predict.** How many rows has the left operand of the one `mm` that runs for
# `(8, 16, 10, 64) @ (64, 32)`?

# %%
with watch_flops() as flops:  # an mm of (rows, k) and (k, n) counts 2 * rows * k * n
    torch.zeros(8, 16, 10, 64) @ torch.zeros(64, 32)
predict(..., lambda: flops.by_op["mm"] // (2 * 64 * 32))

# %% [markdown]
# **Write `matmul(a, b)`.** The operands have any number of dimensions, any layout, and one dtype.
# Return what `torch.matmul` returns. Three things are asked beyond the values:
#
# - All multiplying is done by **one call** of `torch.mm` or `torch.bmm`, and no other product.
# - If `b` is a vector or a matrix, and `a` is contiguous, that call is `mm`.
# - Copy only what must be copied. Let each operand be contiguous, or contiguous but for its last two
#   dimensions, which are exchanged (`.mT`). If one of the two is a vector or a matrix, or both have
#   the same batch dimensions, then nothing is allocated but the result. One case is excepted: a
#   batch that is transposed cannot be viewed as one tall matrix, and in front of a matrix or a
#   vector you may copy it.
#
# Where `torch.matmul` refuses, raise a `ValueError`, or let an error of PyTorch through.
#
# <details><summary>Hint 1: three cases become two</summary>
#
# First promote vectors, as in the exercise before. Then there is a matrix on the right, and you
# fold, or there is a batch on the right, and you expand the batch dimensions of both to their
# common shape. What you added to a vector you take away at the end: `squeeze` that dimension by
# its number.
#
# </details>
# <details><summary>Hint 2: views where possible</summary>
#
# `reshape` gives a view where one exists, and copies where none does. `expand` copies nothing. A
# matrix expanded to a batch can even be reshaped: all its batch dimensions have stride 0.
# `torch.broadcast_shapes` gives the common shape.
#
# </details>
# <details><summary>Hint 3: do not let reshape count</summary>
#
# `reshape(-1, k)` has two traps. With $k = 0$ it cannot know the number of rows, and raises. And
# if you take $k$ from the *other* operand, operands that do not fit slip through: a `(4, 6)`
# becomes `(8, 3)`. And `view()` with no size at all raises: give it a tuple, which may be empty.
# Compute the number of rows with `math.prod`.
#
# </details>


# %% solution="matmul"
def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return what torch.matmul returns, by one call of torch.mm or torch.bmm.

    a: (m, k), (..., m, k) or (k,); b: (k, n), (..., k, n) or (k,)
    """
    ### BEGIN SOLUTION
    # Indexing as a vector refuses a tensor of no dimensions.
    left = a if a.dim() > 1 else a[None, :]  # one row
    right = b if b.dim() > 1 else b[:, None]  # one column
    m, k = left.shape[-2:]
    n = right.shape[-1]

    if right.dim() == 2:
        # Every matrix of the stack meets the same one: stand their rows on top of each other.
        batch = left.shape[:-2]
        tall = left.reshape(math.prod(batch) * m, k)
        result = torch.mm(tall, right)
    else:
        batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        count = math.prod(batch)
        # An expanded dimension has stride 0, and several of them can be viewed as one.
        left = left.expand(*batch, m, k).reshape(count, m, k)
        right = right.expand(*batch, *right.shape[-2:]).reshape(count, *right.shape[-2:])
        result = torch.bmm(left, right)

    # The dimensions that were added to vectors are not there any more.
    rows = () if a.dim() == 1 else (m,)
    columns = () if b.dim() == 1 else (n,)
    return result.view((*batch, *rows, *columns))
    ### END SOLUTION


# %% grade="matmul"
grade("matmul")

# %% [markdown] exercise="best_order"
# title: Choose where to put the brackets
# minutes: 40
# difficulty: 3
# points: 6
# prerequisites: [matmul]
# teaches: >-
#   how floating-point operations are counted, and that the order of a chain of products can decide
#   whether it takes seconds or hours.
# leaves out: memory, and the time that an operation takes, which differs from kernel to kernel.
# off limits: [torch.linalg.multi_dot, torch.chain_matmul, torch.einsum, "import:numpy", "import:opt_einsum"]

# %% [markdown]
# A product of an $(m, k)$ and a $(k, n)$ matrix has $m \cdot n$ elements, each a sum of $k$
# products: $m \cdot k \cdot n$ multiplications and as many additions. That is $2mkn$
# floating-point operations, FLOPs for short. PyTorch counts them with a table of formulas, one for
# each operator:

# %%
a, b, column = torch.zeros(50, 40), torch.zeros(40, 50), torch.zeros(50, 1)
with watch_flops() as flops:
    a @ b
print(flops.by_op, 2 * 50 * 40 * 50)

# %% [markdown]
# Products are associative: $(AB)C = A(BC)$, rounding aside. The operations on the way there are
# not the same:

# %%
for name, multiply in [
    ("(a @ b) @ column", lambda: (a @ b) @ column),
    ("a @ (b @ column)", lambda: a @ (b @ column)),
]:
    with watch_flops() as flops:
        multiply()
    print(name, f"{flops.total:,} FLOPs")

# %% [markdown]
# Python evaluates `a @ b @ column` from left to right: the dear way. It matters wherever small
# things meet, as in the low-rank update of a LoRA layer, $x A B$, where nobody wants $AB$ itself.
#
# **Predict.** The same product once more, with a vector in place of the column: `a @ (b @ vector)`.
# How many FLOPs does the counter report?

# %%
vector = torch.zeros(50)
with watch_flops() as flops:
    a @ (b @ vector)
predict(..., lambda: flops.total)

# %% [markdown]
# The work is the same 8,000. But a matrix by a vector is `mv`, and for that operator the table has
# no formula. The same goes for `dot`, for all elementwise operations and for sums: they count as
# nothing. A counted number is only as good as its table. So count with matrices.
#
# With $n$ matrices there are very many ways to put brackets: for 15 of them 2,674,440. A rule of
# thumb, such as the cheapest product first, is right often and wrong sometimes. To be sure, reason
# backwards. *Some* product comes last, and it splits the chain into a left part and a right part.
# Each part must have been done in its own best way. So the best of a chain follows from the best of
# shorter ones.
#
# **Write `best_order(sizes)`.** `sizes` is a list of $n + 1$ whole numbers from 1 to a million, $n
# \ge 1$: matrix number $i$ has the shape `(sizes[i], sizes[i + 1])`. Return a pair `(flops, order)`:
#
# - `flops`, the least number of FLOPs of the whole chain, counted as above, as an `int`, exact;
# - `order`, one way that takes so many: a matrix is its number, a product is a pair of its left
#   and right part. `((0, 1), 2)` is $(AB)C$, `(0, (1, 2))` is $A(BC)$, and `0` is a single matrix.
#
# Where several ways are equally good, any will do. Chains of 30 matrices must not take long.
#
# <details><summary>Hint 1: what is a part</summary>
#
# A part is a stretch of the chain: matrices from `first` to `last`. Its product has the shape
# `(sizes[first], sizes[last + 1])`, however it was computed.
#
# </details>
# <details><summary>Hint 2: the best of a stretch</summary>
#
# Try each place to split it. The cost is that of the left part's best, plus that of the right
# part's best, plus one product: $2 \cdot$ `sizes[first] * sizes[split + 1] * sizes[last + 1]`.
#
# </details>
# <details><summary>Hint 3: never twice</summary>
#
# A function that calls itself for both parts answers the same questions over and over, three times
# as many for each matrix more. Keep the answers: in a `dict`, with `functools.cache`, or by going
# through the stretches from short to long.
#
# </details>


# %% solution="best_order"
def best_order(sizes: list[int]) -> tuple:
    """Return the least FLOPs of a chain of products, and an order that needs no more.

    sizes: matrix i has the shape (sizes[i], sizes[i + 1])
    returns: (flops, order), an order being a matrix's number or a pair of two orders
    """
    ### BEGIN SOLUTION
    count = len(sizes) - 1
    # best[first, last] answers for the stretch from first to last. Short stretches come first,
    # so that both parts of a longer one are there when it needs them.
    best: dict = {(i, i): (0, i) for i in range(count)}
    for length in range(2, count + 1):
        for first in range(count - length + 1):
            last = first + length - 1
            ways = []
            for split in range(first, last):
                left, right = best[first, split], best[split + 1, last]
                product = 2 * sizes[first] * sizes[split + 1] * sizes[last + 1]
                ways.append((left[0] + right[0] + product, (left[1], right[1])))
            best[first, last] = min(ways, key=lambda way: way[0])
    return best[0, count - 1]
    ### END SOLUTION


# %% grade="best_order"
grade("best_order")

# %% [markdown] exercise="broadcast_matmul"
# title: Broadcast without writing it out
# minutes: 45
# difficulty: 4
# points: 7
# prerequisites: [matmul]
# teaches: >-
#   what a broadcast product costs in memory, and that folding dimensions into rows and columns
#   avoids it.
# leaves out: vectors, and which of the two ways is faster.
# off limits: [torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.Tensor.__rmatmul__, torch.linalg.matmul, torch.ops.aten.matmul, torch._VF.matmul, torch.einsum, torch.tensordot, torch.inner, torch.Tensor.inner, torch.nn.functional.linear, torch.vmap, "import:numpy"]

# %% [markdown]
# Broadcasting an addition is free: the kernel steps along a dimension of stride 0 and reads the
# same numbers again. It is natural to believe the same of `matmul`. Two small operands, 8,192
# numbers each:

# %%
a, b = torch.ones(8, 1, 16, 64), torch.ones(1, 8, 64, 16)
print("operands:  ", a.nbytes, "bytes each")
with watch_memory() as memory:
    result = a + b.mT
print("a + b.mT:  ", memory.new_bytes, "new bytes, of which the result has", result.nbytes)
with watch_memory() as memory, watch_ops() as ops:
    result = a @ b
print("a @ b:     ", memory.new_bytes, "new bytes, of which the result has", result.nbytes)
print("           ", " ".join(ops.names))

# %% [markdown]
# `bmm` wants one batch dimension. Here there are two, and in each operand one of them has stride 0
# after broadcasting and the other has not. No single stride walks through both. So `matmul` calls
# `clone`, twice, and writes both operands out at their broadcast size: eight times what they
# hold. With larger batches this is how a product of two operands that fit runs out of memory.
#
# **Predict.** How many clones does `torch.matmul` make for shapes `(8, 16, 64)` and
# `(8, 64, 16)`, where nothing is broadcast?

# %%
with watch_ops() as ops:
    torch.ones(8, 16, 64) @ torch.ones(8, 64, 16)
predict(..., lambda: ops.count("clone"))

# %% [markdown]
# There is another way. Take apart what one batch dimension is for:
#
# | batch dimension | belongs to |
# |---|---|
# | both operands have it | the batch |
# | only `a` has it; in `b` it is 1 or missing | the **rows**: all of them meet the same `b` |
# | only `b` has it; in `a` it is 1 or missing | the **columns** |
#
# The exercise before used the second line: a stack by a matrix became one tall matrix. The third
# is its mirror. In the example above both apply, and `(8, 1, 16, 64) @ (1, 8, 64, 16)` becomes a
# single product of two matrices, `(128, 64)` and `(64, 128)`. What comes out holds every number
# of the result. They only lie in another order, and order is a matter of views.
#
# **Write `broadcast_matmul(a, b)`.** Both operands have at least two dimensions, any layout, and
# one dtype. Return what `torch.matmul` returns; the result may have any strides.
#
# - All multiplying is done by **one call** of `torch.mm` or `torch.bmm`, and no other product.
# - The bytes that you allocate, all in all, are at most those of the result, of `a` and of `b`, as
#   `nbytes` tells them: you may copy each operand once at its own size, but not at its broadcast
#   size.
#
# Where operands do not fit, raise a `ValueError`, or let an error of PyTorch through.
#
# <details><summary>Hint 1: sort the dimensions</summary>
#
# Put ones in front until both operands have equally many dimensions. Then make three lists of
# batch dimensions: `shared` (equal sizes), `only_a` (in `b` it is 1), `only_b` (in `a` it is 1).
#
# </details>
# <details><summary>Hint 2: permute, reshape, multiply</summary>
#
# Bring `a` into the order shared, only_a, m, k, and reshape it to three dimensions
# $(S, A \cdot m, k)$. Bring `b` into the order shared, k, only_b, n, and reshape it to
# $(S, k, B \cdot n)$. Dimensions of size 1 may stand anywhere. One `bmm`.
#
# </details>
# <details><summary>Hint 3: the way back</summary>
#
# The product can be *viewed* with the dimensions shared, only_a, m, only_b, n. Write down for each
# dimension of the result where in this list it stands; that is the argument of `permute`. Leave
# the strides as they are: a `.contiguous()` at the end would allocate the result a second time.
#
# </details>


# %% solution="broadcast_matmul"
def broadcast_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return what torch.matmul returns, without an operand at its broadcast size.

    a: (..., m, k); b: (..., k, n), any batch dimensions that broadcast
    """
    ### BEGIN SOLUTION
    dims = max(a.dim(), b.dim()) - 2  # batch dimensions
    a = a[(None,) * (dims + 2 - a.dim())]
    b = b[(None,) * (dims + 2 - b.dim())]
    m, k, n = a.shape[-2], b.shape[-2], b.shape[-1]

    shared, only_a, only_b = [], [], []
    for dim in range(dims):
        if a.shape[dim] == b.shape[dim]:
            shared.append(dim)
        elif b.shape[dim] == 1:
            only_a.append(dim)
        elif a.shape[dim] == 1:
            only_b.append(dim)
        else:
            raise ValueError(f"batch sizes {a.shape[dim]} and {b.shape[dim]} do not fit")

    sizes_shared = [a.shape[dim] for dim in shared]
    sizes_a = [a.shape[dim] for dim in only_a]
    sizes_b = [b.shape[dim] for dim in only_b]
    count = math.prod(sizes_shared)
    # The dimensions of size 1 stand where they are in nobody's way.
    left = a.permute(*shared, *only_b, *only_a, dims, dims + 1)
    left = left.reshape(count, math.prod(sizes_a) * m, a.shape[-1])
    right = b.permute(*shared, *only_a, dims, *only_b, dims + 1)
    right = right.reshape(count, k, math.prod(sizes_b) * n)
    product = torch.bmm(left, right).view(*sizes_shared, *sizes_a, m, *sizes_b, n)

    # Where each dimension stands now, in the order in which it is wanted.
    now = [*shared, *only_a, dims, *only_b, dims + 1]
    return product.permute([now.index(dim) for dim in range(dims + 2)])
    ### END SOLUTION


# %% grade="broadcast_matmul"
grade("broadcast_matmul")

# %% [markdown] exercise="strassen"
# title: Multiply with seven products instead of eight
# minutes: 45
# difficulty: 4
# points: 6
# prerequisites: [best_order]
# teaches: >-
#   that 2mkn is not the least number of operations, what the saving costs, and why libraries do
#   not use it.
# leaves out: rectangular matrices, and the faster methods that nobody can use.
# off limits: []

# %% [markdown]
# Cut two square matrices into four blocks each. The product of the blocks, written out, takes eight
# products of half the size:
#
# $$C_{11} = A_{11} B_{11} + A_{12} B_{21}, \quad C_{12} = A_{11} B_{12} + A_{12} B_{22}, \quad \ldots$$
#
# Eight products of half the size are, FLOP for FLOP, one product of the whole size. In 1969 Volker
# Strassen found seven that are enough:
#
# | product | |
# |---|---|
# | $M_1 = (A_{11} + A_{22})(B_{11} + B_{22})$ | $M_5 = (A_{11} + A_{12})\, B_{22}$ |
# | $M_2 = (A_{21} + A_{22})\, B_{11}$ | $M_6 = (A_{21} - A_{11})(B_{11} + B_{12})$ |
# | $M_3 = A_{11}\,(B_{12} - B_{22})$ | $M_7 = (A_{12} - A_{22})(B_{21} + B_{22})$ |
# | $M_4 = A_{22}\,(B_{21} - B_{11})$ | |
#
# $$C_{11} = M_1 + M_4 - M_5 + M_7 \qquad C_{12} = M_3 + M_5$$
# $$C_{21} = M_2 + M_4 \qquad C_{22} = M_1 - M_2 + M_3 + M_6$$
#
# Nothing in it needs $ab = ba$, so the letters may be matrices, and each of the seven products can
# be done in the same way again. That is where the gain comes from: each level saves another eighth.
#
# **Predict.** `mm` of two `(64, 64)` matrices takes $2 \cdot 64^3 = 524{,}288$ FLOPs. With two
# levels of Strassen, down to blocks of 16, how many FLOPs do the products take?

# %%
predict(..., lambda: 7 * 7 * (2 * 16**3))

# %% [markdown]
# Why does no library do it? The additions count as nothing in the counter, but they cost time: each
# reads and writes memory. And there is a loss of another kind. The blocks are added *before* they
# are multiplied, so a small block next to a large one is rounded away:

# %%
big, small = torch.tensor(2.0**26), torch.tensor(3.0)
print("directly:             ", (small * small + small * small).item())
m1, m2 = (big + small) * (big + small), (small + small) * big
m3, m6 = big * (small - small), (small - big) * (big + small)
print("by Strassen's formula:", (m1 - m2 + m3 + m6).item())

# %% [markdown]
# That is $C_{22}$ of the square of a matrix with $2^{26}$ in the first corner and 3 elsewhere. The
# true 18 is gone. The error is small beside the *largest* elements, whose square is $2^{52}$; beside
# the element itself it is everything. Users expect better of `mm`.
#
# **Write `strassen(a, b, leaf)`.** `a` and `b` are square `float32` matrices of the same size $n \ge
# 1$, in any layout. Return their product.
#
# - A product of matrices of at most `leaf` rows ($\text{leaf} \ge 1$) is done by one `torch.mm`.
# - A larger one is cut into blocks, and takes seven products of half the size, each done by the same
#   rule. Where the size is odd, half of it is rounded up: add a row and a column of zeros first, and
#   leave them out of the result.
#
# So the FLOPs are at most $f(n)$, with $f(n) = 2n^3$ up to the leaf and $f(n) = 7 f(\lceil n/2
# \rceil)$ beyond. All multiplying is done by `mm`, or `bmm`.
#
# On whole numbers the result is exact. On others the error of an element is at most Higham's bound
# for Strassen's method, which is generous.
#
# <details><summary>Hint 1: recursion</summary>
#
# The function calls itself, seven times. It ends where there are at most `leaf` rows.
#
# </details>
# <details><summary>Hint 2: blocks and zeros</summary>
#
# Slices give the blocks as views. `torch.nn.functional.pad(a, (0, 1, 0, 1))` adds one column on the
# right and one row at the bottom. The result is put together by `torch.cat`, or written into slices
# of an empty matrix.
#
# </details>
# <details><summary>Hint 3: pad late</summary>
#
# It is tempting to pad to a power of two once, at the start. For 65 rows that means 128, and nearly
# six times the work that is needed. Pad at each level, by at most one row.
#
# </details>


# %% solution="strassen"
def strassen(a: torch.Tensor, b: torch.Tensor, leaf: int) -> torch.Tensor:
    """Return a @ b with seven products of half the size at each level.

    a, b: float32 (n, n)
    leaf: up to this size torch.mm does it
    """
    ### BEGIN SOLUTION
    n = len(a)
    if n <= leaf:
        return torch.mm(a, b)
    if n % 2:
        pad = torch.nn.functional.pad
        return strassen(pad(a, (0, 1, 0, 1)), pad(b, (0, 1, 0, 1)), leaf)[:n, :n]

    h = n // 2
    a11, a12, a21, a22 = a[:h, :h], a[:h, h:], a[h:, :h], a[h:, h:]
    b11, b12, b21, b22 = b[:h, :h], b[:h, h:], b[h:, :h], b[h:, h:]
    m1 = strassen(a11 + a22, b11 + b22, leaf)
    m2 = strassen(a21 + a22, b11, leaf)
    m3 = strassen(a11, b12 - b22, leaf)
    m4 = strassen(a22, b21 - b11, leaf)
    m5 = strassen(a11 + a12, b22, leaf)
    m6 = strassen(a21 - a11, b11 + b12, leaf)
    m7 = strassen(a12 - a22, b21 + b22, leaf)
    top = torch.cat([m1 + m4 - m5 + m7, m3 + m5], dim=1)
    bottom = torch.cat([m2 + m4, m1 - m2 + m3 + m6], dim=1)
    return torch.cat([top, bottom])
    ### END SOLUTION


# %% grade="strassen"
grade("strassen")

# %% [markdown] exercise="steady_matmul"
# title: Give every row one history
# minutes: 35
# difficulty: 4
# points: 5
# prerequisites: [matmul]
# teaches: >-
#   why a row of a batch need not have the bits that it has alone, and what it takes that it does;
#   what it means to accumulate in float32.
# leaves out: speed, and gradients.
# off limits: ["aten:mm", "aten:bmm", "aten:mv", "aten:dot", "aten:vdot", "aten:addmm", "aten:addmv", "aten:baddbmm", "aten:addbmm", "aten:addr", "aten:linear", torch.einsum, "cast:torch.float64", "import:numpy"]

# %% [markdown]
# Row `i` of `A @ B` is `A[i] @ B`. In mathematics, yes. In floating point a sum depends on the
# order of its terms:

# %%
terms = torch.tensor([2.0**24, 1.0, 1.0])
print(((terms[0] + terms[1]) + terms[2]).item(), (terms[0] + (terms[1] + terms[2])).item())

# %% [markdown]
# And `mm` promises no order. Its kernel cuts the work into tiles that suit the processor's caches
# and registers. How it cuts depends on the sizes, the number of rows among them. With one row it may
# be another kernel altogether. So whether the two below are equal, bit for bit, depends on your
# processor. Look at `differing` in a cell of your own: where this was written, 3,649 of 4,096
# elements were not equal. That they are *close* is what is promised:

# %%
generator = torch.Generator().manual_seed(0)
a, b = torch.randn(64, 257, generator=generator), torch.randn(257, 64, generator=generator)
together = a @ b
alone = torch.cat([a[i : i + 1] @ b for i in range(64)])
differing = int((together != alone).sum())
print(torch.allclose(together, alone, atol=1e-3))

# %% [markdown]
# Two things follow. A test never compares results of `mm` bit by bit. And the answer of a language
# model to your question may depend on how many other people's questions were in the same batch,
# even at temperature 0.
#
# A kernel is called **batch-invariant** if it gives a row the same bits, whatever other rows there
# are. The way to it is to fix the history of each element: which products are added to which sum,
# and when. Then nothing is left that the batch could change.
#
# The history also has a dtype. A `bfloat16` has eight significant bits, so a sum that is kept in
# `bfloat16` soon sticks. The rule for kernels of 16-bit floats is: multiply and add in `float32`,
# round **once**, at the end. Do not take it for granted. On GPUs PyTorch lets `float16` products add
# partial sums in `float16`, unless you forbid it:

# %%
print(torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction)

# %% [markdown]
#
# **Predict.** 1,000 ones are added one after the other, in `bfloat16`, by `total = total + 1`.
# Which number comes out?

# %%
total = torch.zeros((), dtype=torch.bfloat16)
for _ in range(1000):
    total = total + 1
predict(..., lambda: total.item())

# %% [markdown]
# **Write `steady_matmul(a, b)`.** `a` has shape `(m, k)`, `b` has shape `(k, n)`, in any layout; both
# are `float32`, `bfloat16` or `float16`, the same. Return the product, in that dtype, where every
# element has this history:
#
# 1. Operands are taken as `float32`. The sum begins at 0, in `float32`.
# 2. For each `k`, from the first to the last: the product is computed and rounded to `float32`; it is
#    added to the sum, which is rounded to `float32`.
# 3. At the end the sum is rounded to the dtype of the operands.
#
# All sizes may be 0. A zero may come with either sign. The whole history is checked: equal results,
# bit by bit, are what this exercise is about. `float64` is off limits.
#
# <details><summary>Hint 1: all elements at once</summary>
#
# The order counts within an element, not between elements. So take one step of the history for
# all elements together: the `k`-th column of `a` times the `k`-th row of `b`, by broadcasting, is
# all their `k`-th products.
#
# </details>
# <details><summary>Hint 2: why not sum</summary>
#
# `(a[:, :, None] * b).sum(1)` computes the same products. But `sum` adds in an order of its own: it
# keeps several partial sums, for speed and for accuracy.
#
# </details>
# <details><summary>Hint 3: two roundings</summary>
#
# `acc + x * y` rounds twice, as is asked. `torch.addcmul` may use an instruction that multiplies
# and adds in one go, and rounds once. That is more accurate and has other bits.
#
# </details>


# %% solution="steady_matmul"
def steady_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a @ b, every element summed in float32, term by term, first to last.

    a: (m, k); b: (k, n), both float32, bfloat16 or float16
    """
    ### BEGIN SOLUTION
    left, right = a.float(), b.float()
    total = torch.zeros(a.shape[0], b.shape[1])
    for step in range(a.shape[1]):
        # One more term for all elements. For 16-bit operands this product is exact: 8 + 8 or
        # 11 + 11 significant bits fit into 24.
        total = total + left[:, step, None] * right[step]
    return total.to(a.dtype)
    ### END SOLUTION


# %% grade="steady_matmul"
grade("steady_matmul")

# %% [markdown] exercise="einsum"
# title: Build einsum
# minutes: 75
# difficulty: 5
# points: 10
# prerequisites: [broadcast_matmul]
# teaches: >-
#   that einsum names dimensions instead of counting them, and that every contraction of two
#   operands is permute, reshape and one bmm.
# leaves out: whole numbers, whose sums have a wider dtype; the best order of the pairs.
# off limits: [torch.einsum, torch.functional.einsum, torch.ops.aten.einsum, torch.ops.aten.einsum.default, torch._VF.einsum, "import:numpy", "import:opt_einsum"]

# %% [markdown]
# In `einsum` each dimension has a letter. A letter that stands in the output is kept. One that
# does not is summed over. That is all, and it covers most of linear algebra:

# %%
square, rows, columns = torch.arange(9.0).view(3, 3), torch.ones(3), torch.arange(3.0)
for equation, operands in [
    ("ij->ji", [square]),
    ("ij->", [square]),
    ("ii->i", [square]),
    ("ij,j->i", [square, columns]),
    ("i,j->ij", [rows, columns]),
]:
    print(f"{equation:>8}", torch.einsum(equation, *operands).tolist())

# %% [markdown]
# Is it a machine of its own? Look at what runs:

# %%
for equation, shapes in [
    ("ij->ji", [(3, 4)]),
    ("ii->i", [(3, 3)]),
    ("ij->j", [(3, 4)]),
    ("i,j->ij", [(3,), (4,)]),
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("bhqd,bhkd->bhqk", [(2, 4, 3, 5), (2, 4, 6, 5)]),
]:
    with watch_ops() as ops:
        torch.einsum(equation, *[torch.zeros(shape) for shape in shapes])
    work = [name for name in ops.names if "view" not in name and name != "zeros"]
    print(f"{equation:>16}", " ".join(name for name in work if "squeeze" not in name))

# %% [markdown]
# Permutations, a diagonal, a sum, a multiplication; and where two operands are contracted, one
# `bmm`. It is neither dearer than `matmul` nor cheaper: it *is* the same kernel, called with other
# views. What you gain is that the equation says which dimension is which.
#
# The rules to know:
#
# - **A repeated letter** within one operand takes a diagonal. The sizes must be equal, exactly.
# - **Without `->`** the output has the letters that occur exactly once in all inputs together, in
#   the order of their character codes: capitals before small letters.
# - **`...`** stands for as many dimensions as are left over, maybe none. Those of different
#   operands are aligned on the right and broadcast. Without `->` they come first in the output.
#   With `->` and no `...` behind it, they are summed over.
# - **A size of 1 fits any other**, as in broadcasting. (NumPy's `einsum` does so too; PyTorch's
#   once did not.)
# - **Spaces** mean nothing.
#
# **Predict.** What is the shape of `torch.einsum("aB", x)` for an `x` of shape `(2, 3)`? Write a
# tuple.

# %%
predict(..., lambda: tuple(torch.einsum("aB", torch.zeros(2, 3)).shape))

# %% [markdown]
# **Write `einsum(equation, *operands)`.** The equation follows these rules; the letters are `a` to
# `z` and `A` to `Z`. There is at least one operand; all have one floating-point dtype. Return what
# `torch.einsum` returns: the same values, shape and dtype; a view of an operand is fine where one
# will do. Several operands are combined from left to right.
#
# - Contracting two operands takes **one** product (`mm`, `bmm`, `matmul`, as you like), and $n$
#   operands take at most $n - 1$.
# - For two operands, make no tensor that is larger than the larger operand or the result. So do not
#   multiply everything by everything and sum afterwards.
#
# Raise a `ValueError` if the equation has other characters, a `.` outside `...`, two `...` in one
# term, more than one `->`, more or fewer terms than there are operands; if a term has more or
# fewer letters than its operand has dimensions (and no `...` that could stand for the rest); if
# sizes of a letter or behind `...` do not fit; if the output has a letter twice, or one that no
# input has.
#
# <details><summary>Hint 1: one name per dimension</summary>
#
# Turn each term into a list with one name per dimension. Give the hidden ones behind `...` names as
# well, by their distance from the right: the last is 1, the one before it 2, and so on. Whole
# numbers cannot be mistaken for letters. After that nothing needs to know about `...`.
#
# </details>
# <details><summary>Hint 2: make operands simple first</summary>
#
# Repeated name: `x.diagonal(0, i, j)` removes both dimensions and puts the diagonal last. Size 1
# where the name's size is another: `squeeze` that dimension and forget the name in this operand.
# Then every name is once in each operand, and sizes are equal.
#
# </details>
# <details><summary>Hint 3: two operands</summary>
#
# A name is *needed later* if the output or an operand still to come has it. Sum away what only one
# of the two has and nobody needs later (give `sum` the dtype: it widens whole numbers). What is
# left falls into four kinds: in both and needed later (batch), in both and not needed (inner), only
# in the left one (rows), only in the right one (columns). Permute both, reshape to
# (batch, rows, inner) and (batch, inner, columns), and call `bmm`.
#
# </details>


# %% solution="einsum"
def einsum(equation: str, *operands: torch.Tensor) -> torch.Tensor:
    """Return what torch.einsum returns, with at most one product for each pair of operands.

    raises: ValueError if the equation is none, or does not fit the operands
    """

    ### BEGIN SOLUTION
    def names_of(term: str, dims: int | None) -> list:
        """Name every dimension: a letter, or for a hidden one its distance from the right."""
        before, dots, after = term.partition("...")
        letters = before + after
        if any(letter not in string.ascii_letters for letter in letters):
            raise ValueError(f"{term!r} has a character that is no letter")
        hidden = widest if dims is None else dims - len(letters)
        return [*before, *(range(hidden, 0, -1) if dots else ()), *after]

    def summed(x: torch.Tensor, names: list, wanted: set) -> tuple[torch.Tensor, list]:
        """Sum over the dimensions whose names nobody wants."""
        gone = [dim for dim, name in enumerate(names) if name not in wanted]
        if gone:
            x = x.sum(gone)
        return x, [name for name in names if name in wanted]

    inputs, arrow, output = equation.replace(" ", "").partition("->")
    # With strict=True zip itself raises a ValueError: here if there are more or fewer terms than
    # operands, below if there are more or fewer names than dimensions.
    matched = zip(inputs.split(","), operands, strict=True)
    named = [(names_of(term, x.dim()), x) for term, x in matched]
    widest = max(name for names, _ in named for name in [0, *names] if isinstance(name, int))

    # The size of a name is the one that is not 1, if there is one.
    sizes: dict = {}
    for names, x in named:
        here: dict = {}
        for name, size in zip(names, x.shape, strict=True):
            if here.setdefault(name, size) != size:
                raise ValueError(f"{name!r} is repeated with different sizes")
            known = sizes.get(name, 1)
            if known != size and 1 not in (known, size):
                raise ValueError(f"{name!r} has size {known} and size {size}")
            sizes[name] = size if known == 1 else known

    if arrow:
        kept = names_of(output, None)
        if len(set(kept)) < len(kept) or any(isinstance(n, str) and n not in sizes for n in kept):
            raise ValueError(f"{output!r} repeats a letter, or has one that no input has")
    else:
        letters = inputs.replace(",", "").replace(".", "")
        kept = [*range(widest, 0, -1), *sorted(n for n in letters if letters.count(n) == 1)]

    simple = []
    for names, x in named:
        for name in set(names):
            while names.count(name) > 1:
                first = names.index(name)
                second = names.index(name, first + 1)
                x = x.diagonal(0, first, second)  # goes to the end
                names = [n for dim, n in enumerate(names) if dim not in (first, second)] + [name]
        for name in [n for n in names if sizes[n] != 1]:
            if x.shape[names.index(name)] == 1:
                x = x.squeeze(names.index(name))
                names = [n for n in names if n != name]
        simple.append((x, names))

    x, here = simple[0]
    for position, (y, there) in enumerate(simple[1:], start=2):
        later = {*kept, *(name for _, names in simple[position:] for name in names)}
        x, here = summed(x, here, later | set(there))
        y, there = summed(y, there, later | set(here))
        batch = [n for n in here if n in there and n in later]
        inner = [n for n in here if n in there and n not in later]
        rows = [n for n in here if n not in there]
        columns = [n for n in there if n not in here]
        b, i, r, c = (math.prod(sizes[n] for n in group) for group in (batch, inner, rows, columns))
        left = x.permute([here.index(n) for n in batch + rows + inner]).reshape(b, r, i)
        right = y.permute([there.index(n) for n in batch + inner + columns]).reshape(b, i, c)
        here = batch + rows + columns
        x = torch.bmm(left, right).view([sizes[n] for n in here])

    x, here = summed(x, here, set(kept))
    return x.permute([here.index(name) for name in kept])
    ### END SOLUTION


# %% grade="einsum"
grade("einsum")
