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
#   Most of what a network computes is products of matrices. PyTorch has many names for that, and two
#   kernels that do most of the work: one matrix by one matrix, and a batch of them.
#   The rest (broadcasting, einsum, linear layers, convolutions, attention) is largely a matter of
#   views around those two. In this chapter you build the views, and you measure what they cost: which
#   operators ran, which bytes were copied, how many multiplications were spent.
# preload: [torch._dynamo]
# off limits:
#   products:
#     says: "operators that multiply and sum"
#     rules: ["aten:mm", "aten:bmm", "aten:mv", "aten:dot", "aten:vdot", "aten:addmm", "aten:addmv", "aten:baddbmm", "aten:addbmm", torch.einsum]
#   stacked products:
#     says: "`matmul`, and what else broadcasts products"
#     rules: [torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.Tensor.__rmatmul__, torch.linalg.matmul, torch.ops.aten.matmul, torch._VF.matmul, torch.einsum, torch.tensordot, torch.inner, torch.Tensor.inner, torch.nn.functional.linear, torch.vmap, "import:numpy"]
#   attention:
#     says: "PyTorch's own attention"
#     rules: [torch.nn.functional.scaled_dot_product_attention, torch.nn.functional.multi_head_attention_forward, torch.nn.MultiheadAttention, "aten:_safe_softmax", "aten:_scaled_dot_product_flash_attention_for_cpu"]

# %% [markdown]
# ## What to bring
#
# You know shapes, strides and broadcasting, from chapter 2. You know that a float has a finite
# number of bits, from chapter 1. You need nothing else.

# %%
import inspect
import math
import string
import warnings
from collections.abc import Iterable

import torch
import torch.nn.functional as F

from grader import (
    grade,
    hint,
    predict,
    solution,
    watch_flops,
    watch_memory,
    watch_ops,
    written,
)

# %% [markdown] sitting="one-product"
# question: What does `@` do with tensors of any shape?
# reached: >-
#   It promotes vectors, broadcasts batches, and folds the rest by views into one `mm` or one
#   `bmm`.

# %% [markdown]
# ## The family
#
# These five functions of PyTorch multiply and sum. They differ in what they accept:

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
# written as an operator. `einsum`, a seventh name, takes an equation that says what to do, with a letter
# for each dimension; you build it further down. (Older texts name dimensions for good:
# `torch.zeros(2, 3, names=("batch", "time"))`. These *named tensors* were an experiment, and PyTorch 2.13 has
# removed them.)
#
# What `dot` returns is shown as `()`: a tensor without dimensions, which is not a number of
# Python's. `item()` makes it one. And `dot` of two matrices is an error, where `numpy.dot` multiplies
# them.

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
# off limits: [products, "import:numpy"]
# forbids: "operators that multiply and sum; NumPy"
# allowed: [copies, creation, elementwise, indexing, reductions, views]

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
# Look: matmul/element#a=3x4&b=4x5&at=1.2 | One element of a product is a row, a column and four
# products. Choose another element.
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
# `mm` wrote none of them down where the cell before could see it: it allocated its result alone.
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
# short: true
# prerequisites: []
# teaches: >-
#   the three rules by which matmul takes operands of any rank, and what it refuses.
# leaves out: dtypes, and how the product is computed.
# off limits: [torch.broadcast_shapes, torch._refs._broadcast_shapes, torch._C._infer_size, torch._subclasses.fake_impls.infer_size, torch.jit._shape_functions, "import:numpy"]
# forbids: functions that broadcast shapes; NumPy
# allowed: []

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
# Look: matmul/dims#a=2x1x3x4&b=1x5x4x2 | Batch dimensions 2 × 1 and 1 × 5 make 2 × 5; then 3 × 4
# meets 4 × 2. Change sizes until they do not fit.
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
# Draw: show_cells({f"prediction {row[0] + 0:g}": [(f"{value:g}", "right" if value == 0 else "made
# up") for value in row] for row in (prediction - target).tolist()}, [f"target {value:g}" for
# value in target.tolist()]) | What the loss was the mean of, squared. The diagonal is what was
# meant.
#
# A loss of 2.5 where there is no error, because every prediction was compared with every target.
# Training goes on, and learns to predict the mean. All that PyTorch gives is a warning. Make the
# shapes equal before you compare: multiply by a vector of weights, or `squeeze(-1)`.

# %% [markdown] exercise="matmul"
# title: Fold everything into one product
# minutes: 40
# difficulty: 3
# points: 9
# short: true
# prerequisites: [matmul_shape]
# teaches: >-
#   that matmul is views around one mm or one bmm, and when those views cost nothing.
# leaves out: gradients, for which torch.matmul folds more, and copies more.
# off limits: [stacked products]

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
# takes the place of four small products. A linear layer does the same to a batch of sequences; only
# that `addmm` adds the bias as well:

# %%
layer, sequences = torch.nn.Linear(5, 2), torch.zeros(4, 3, 5)
with watch_ops() as ops:
    layer(sequences)
print(" ".join(ops.names))

# %% [markdown]
# Look: matmul/runs#a=4x3x5&b=5x2&dtype=float32 | `(4, 3, 5) @ (5, 2)`: the batch is folded into
# twelve rows, one `mm` runs, and nothing is copied.
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

# %% [markdown] sitting="cost"
# question: Why is the same result cheap in one way and dear in another?
# reached: >-
#   Brackets decide how many multiplications there are, and what is written out decides how much
#   memory. Neither changes what is computed.

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
# forbids: "functions that choose an order; NumPy"

# %% [markdown]
# A product of an $(m, k)$ and a $(k, n)$ matrix has $m \cdot n$ elements, each a sum of $k$
# products that begins at 0: $m \cdot k \cdot n$ multiplications and as many additions. That is $2mkn$
# floating-point operations, FLOPs for short. PyTorch counts them with a table of formulas, one for
# each operator (`flop_registry` in `torch/utils/flop_counter.py`):

# %%
a, b, column = torch.zeros(50, 40), torch.zeros(40, 50), torch.zeros(50, 1)
with watch_flops() as flops:
    a @ b
print(flops.by_op, 2 * 50 * 40 * 50)

# %% [markdown]
# Look: matmul/costs#a=50x40&b=40x50&dtype=float32 | A `(50, 40)` by a `(40, 50)` takes 200,000
# FLOPs. Double a size, and see which numbers double.
#
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
# short: true
# prerequisites: [matmul]
# teaches: >-
#   what a broadcast product costs in memory, and that folding dimensions into rows and columns
#   avoids it.
# leaves out: vectors, and which of the two ways is faster.
# off limits: [stacked products]

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
# Draw: show_bars({"one operand": a.nbytes, "the result": result.nbytes, "all that a @ b
# allocates": memory.new_bytes}, "bytes") | The rest of the last bar is the two clones.
#
# `bmm` wants one batch dimension. Here there are two, and in each operand one of them has stride 0
# after broadcasting and the other has not. No single stride walks through both. So `matmul` calls
# `clone`, twice, and writes both operands out at their broadcast size: eight times what they
# hold. With larger batches this is how a product of two operands that fit runs out of memory.
#
# Look: matmul/runs#a=8x1x16x64&b=1x8x64x16&dtype=float32 | What runs for these shapes: both
# operands are copied at their broadcast size, then comes one `bmm`.
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
# The exercise `matmul` used the second line: a stack by a matrix became one tall matrix. The third
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

# %% [markdown] sitting="exactness"
# question: Do two right products agree to the last bit?
# reached: >-
#   No. Fewer multiplications, or another order of a sum, round differently. Equal bits take one
#   order for every row, whoever its neighbours are.

# %% [markdown] exercise="strassen"
# title: Multiply with seven products instead of eight
# minutes: 45
# difficulty: 4
# points: 6
# prerequisites: [best_order]
# teaches: >-
#   that 2mkn is not the least number of operations, and what the saving costs in accuracy.
# leaves out: rectangular matrices, and methods with fewer operations still.
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
#
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
# Does `mm` do it? The additions count as nothing in the counter, but they cost time: each reads and
# writes memory. And there is a loss of another kind. The blocks are added *before* they are
# multiplied, so a small block next to a large one is rounded away. The third line asks `mm` itself,
# with the same four numbers, each times a unit matrix of 256 rows:

# %%
big, small = torch.tensor(2.0**26), torch.tensor(3.0)
print("directly:             ", (small * small + small * small).item())
m1, m2 = (big + small) * (big + small), (small + small) * big
m3, m6 = big * (small - small), (small - big) * (big + small)
print("by Strassen's formula:", (m1 - m2 + m3 + m6).item())
blocks = torch.kron(torch.tensor([[2.0**26, 3], [3, 3]]), torch.eye(256))
print("by mm:                ", (blocks @ blocks)[-1, -1].item())

# %% [markdown]
# That is $C_{22}$ of the square of a matrix with $2^{26}$ in the first corner and 3 elsewhere. The
# true 18 is gone. The error is small beside the *largest* elements, whose square is $2^{52}$; beside
# the element itself it is everything. `mm` here gives the 18.
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
# off limits: [products, "aten:addr", "aten:convolution", "aten:_convolution", "aten:mkldnn_convolution", "cast:torch.float64", "import:numpy"]
# forbids: "operators that multiply and sum, `float64`, NumPy"

# %% [markdown]
# Row `i` of `A @ B` is `A[i] @ B`. In mathematics, yes. In floating point a sum depends on the
# order of its terms:

# %%
terms = torch.tensor([2.0**24, 1.0, 1.0])
print(((terms[0] + terms[1]) + terms[2]).item(), (terms[0] + (terms[1] + terms[2])).item())

# %% [markdown]
# And `mm` promises no order: by the documentation ("Numerical accuracy", "Batched computations or slice
# computations") a part of a batch need not have the bits that it has alone. A kernel may cut the work
# into tiles as the sizes suggest, the number of rows among them. So whether the two below are equal,
# bit for bit, depends on your processor. Look at `differing` in a cell of your own: where this was
# written, 3,649 of 4,096 elements were not equal. That they are *close* is what is promised:
#
# Draw: show_bars({name: round(abs(sum((torch.tensor(1 / k) for k in order),
# torch.tensor(0.0)).item() - math.fsum(1 / k for k in order)) * 1e6, 1) for name, order in
# (("largest first", range(1, 5001)), ("smallest first", range(5000, 0, -1)))}, "millionths") |
# How wrong 1 + 1/2 + … + 1/5,000 is in float32, added up in two orders.

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
# `bfloat16` soon sticks. A good kernel for 16-bit floats multiplies and adds in `float32` and rounds
# **once**, at the end. Do not take it for granted. By the documentation ("CUDA semantics", "Reduced
# Precision Reduction in FP16 GEMMs") products of `float16` on GPUs may add partial sums in `float16`,
# unless you forbid it. This is the switch:

# %%
print(torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction)

# %% [markdown]
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
        # One more term for all elements. For 16-bit operands this product is exact, unless it
        # leaves the range: 8 + 8 or 11 + 11 significant bits fit into 24.
        total = total + left[:, step, None] * right[step]
    return total.to(a.dtype)
    ### END SOLUTION


# %% grade="steady_matmul"
grade("steady_matmul")

# %% [markdown] sitting="einsum"
# question: Can one notation hold every product?
# reached: >-
#   Letters for dimensions: those in the output stay, the others are summed. Two operands always
#   come down to permute, reshape and one `bmm`.

# %% [markdown] exercise="einsum"
# title: Build einsum
# minutes: 75
# difficulty: 5
# points: 11
# prerequisites: [broadcast_matmul]
# teaches: >-
#   that einsum names dimensions instead of counting them, and that every contraction of two
#   operands is permute, reshape and one bmm.
# leaves out: whole numbers, whose sums have a wider dtype; the best order of the pairs.
# off limits: [torch.einsum, torch.functional.einsum, torch.ops.aten.einsum, torch.ops.aten.einsum.default, torch._C._VariableFunctions.einsum, "import:numpy", "import:opt_einsum"]
# forbids: "PyTorch's own `einsum`, and others'"

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
# `bmm`. For two operands that is what `matmul` is as well: views around one product. What you gain is
# that the equation says which dimension is which.
#
# The rules to know:
#
# - **A repeated letter** within one operand takes a diagonal. The sizes must be equal, exactly.
# - **Without `->`** the output has the letters that occur exactly once in all inputs together, in
#   the order of their character codes: capitals before small letters.
# - **`...`** stands for as many dimensions as are left over, maybe none. Those of different
#   operands are aligned on the right and broadcast. Without `->` they come first in the output.
#   With `->` and no `...` behind it, they are summed over.
# - **A size of 1 fits any other**, as in broadcasting.
# - **Spaces** mean nothing.
#
# Look: matmul/dims#eq=bhqd,bhkd->bhqk&a=2x4x3x5&b=2x4x6x5&dtype=float32 | The scores of attention:
# `b` and `h` stand in all three, `d` only in the two operands, so it is summed. Rewrite the
# equation.
#
# **Predict.** What is the shape of `torch.einsum("aB", x)` for an `x` of shape `(2, 3)`? Write a
# tuple.

# %%
predict(..., lambda: tuple(torch.einsum("aB", torch.zeros(2, 3)).shape))

# %% [markdown]
# **Write `einsum(equation, *operands)`.** The equation follows these rules; the letters are `a` to
# `z` and `A` to `Z`. There is at least one operand; all have one floating-point dtype, and any size
# may be 0. Return what `torch.einsum` returns: the same values, shape and dtype; a view of an operand
# is fine where one will do. Several operands are combined from left to right.
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
# of the two has and nobody needs later. What is left falls into four kinds: in both and needed
# later (batch), in both and not needed (inner), only in the left one (rows), only in the right one
# (columns). Permute both, reshape to (batch, rows, inner) and (batch, inner, columns), and call
# `bmm`.
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

# %% [markdown] sitting="convolution"
# question: What has a convolution to do with a matrix product?
# reached: >-
#   It is one: of the weights with a view that shows every window. A linear layer is the case of a
#   single window.

# %% [markdown] exercise="conv2d"
# title: A convolution is one contraction
# minutes: 40
# difficulty: 3
# points: 8
# prerequisites: [matmul, einsum]
# teaches: >-
#   that a convolution is a strided view of its input, contracted with its weights; and what stride,
#   padding, dilation and groups do to that view.
# leaves out: padding with anything but zeros, transposed convolution, Winograd and FFT algorithms.
# off limits: [torch.nn.functional.conv2d, torch.nn.Conv2d, "aten:convolution", "aten:_convolution", "aten:mkldnn_convolution", "aten:slow_conv_dilated2d", "aten:_slow_conv2d_forward", "aten:im2col"]
# forbids: "PyTorch's own convolutions"
# allowed: [copies, creation, elementwise, indexing, matrix products, reductions, views]

# %% [markdown]
# A convolution slides a small window over an image. At each place it multiplies what it sees with
# the weights and adds up. That is a matrix product in which one operand repeats itself, because
# neighbouring windows overlap.
#
# An overlap needs no copy. Strides can say it. Here is a row of six numbers, seen through a window
# of three:

# %%
row = torch.arange(6)
print(row.as_strided((4, 3), (1, 1)))

# %% [markdown]
# Twelve elements, six numbers in memory. Stepping to the next window and stepping within a window
# both cost one element. Change the first stride, and the window jumps: that is `stride`. Change the
# second, and the window has holes: that is `dilation`.
#
# Look: strides/cells#shape=7&ops=unfold.0.3.2&at=1x0 | Windows of three that begin at every second
# cell: strides 2 and 1, and nothing copied.

# %%
print(row.as_strided((2, 3), (2, 1)).tolist(), "stride 2")
print(row.as_strided((2, 3), (1, 2)).tolist(), "dilation 2")

# %% [markdown]
# `torch.nn.Conv2d` takes these arguments:
#
# | argument | meaning |
# |---|---|
# | `in_channels`, `out_channels` | $C$ and $O$ |
# | `kernel_size` | height and width of the window, $K_h \times K_w$ |
# | `stride` | how far the window moves from one output to the next |
# | `padding` | how many zeros are put on *each* side, first |
# | `dilation` | the distance between two elements of the window; 1 means no holes |
# | `groups` | how many independent parts the channels are cut into |
# | `bias` | whether one number per output channel is added |
#
# A window with dilation $d$ spans $d(K-1)+1$ elements. So from a height $H$ you get
#
# $$H_\text{out} = \left\lfloor \frac{H + 2p - d(K-1) - 1}{s} \right\rfloor + 1$$
#
# rows. Whatever does not fill a window at the far end is left unread.
#
# The weights have the shape $(O, C/\text{groups}, K_h, K_w)$. With two groups, the first half of the
# output channels sees only the first half of the input channels, and so on. So there are not
# $O \cdot C$ windows of weights but $O \cdot C / \text{groups}$: weights and work are both divided by the
# number of groups. With `groups` equal to $C$ each channel is filtered by
# itself: a **depthwise** convolution.
#
# Draw: show_cells({f"output {to}": row for to, row in enumerate(F.conv2d(torch.eye(6)[:, :, None,
# None], torch.ones(6, 3, 1, 1), groups=2)[..., 0, 0].T.bool().tolist())}, [f"input {at}" for at in
# range(6)], bare=True) | Six channels in, six out, two groups: coloured is which input channel an
# output channel sees. Half of the weights are not there.

# %%
image = torch.randn(1, 8, 10, 10)
for groups in (1, 2, 8):
    layer = torch.nn.Conv2d(8, 16, 3, groups=groups)
    with watch_flops() as flops:
        layer(image)
    print(f"groups {groups}: weight {tuple(layer.weight.shape)!s:15} {flops.total:>6} FLOPs")

# %% [markdown]
# One more thing the name hides. Mathematics flips the window before it slides it. PyTorch does not:
# what it calls convolution is a *cross-correlation*.

# %%
signal = torch.tensor([[[[0.0, 0.0, 1.0, 0.0, 0.0]]]])
window = torch.tensor([[[[1.0, 2.0, 3.0]]]])
print(F.conv2d(signal, window).tolist())

# %% [markdown]
# **Predict.** An image of 224 × 224 goes through the first layer of a ResNet: a 7 × 7 window,
# stride 2, padding 3. How high is what comes out?

# %%
predict(
    ..., lambda: F.conv2d(torch.zeros(1, 1, 224, 224), torch.zeros(1, 1, 7, 7), None, 2, 3).shape[2]
)

# %% [markdown]
# Now the price. The view costs nothing. The contraction is a matrix product, and a matrix has one
# stride per dimension, so `einsum` copies the windows before it multiplies:

# %%
image, weight = torch.randn(1, 8, 20, 20), torch.randn(16, 8, 3, 3)
with watch_memory() as memory:
    windows = image.unfold(2, 3, 1).unfold(3, 3, 1)
print(f"the view: {memory.new_bytes} bytes")
with watch_memory() as memory:
    torch.einsum("nchwij,ocij->nohw", windows, weight)
print(f"the contraction: {memory.new_bytes} bytes, of them {windows.numel() * 4} for the windows")

# %% [markdown]
# **Write `conv2d(x, weight, bias, stride, padding, dilation, groups)`.** `x` is a `float32` tensor
# $(N, C, H, W)$ in any layout, `weight` one of shape $(O, C/\text{groups}, K_h, K_w)$, `bias` one of
# shape $(O)$ or `None`. `stride`, `padding` and `dilation` are pairs, for height and width. $N$ may be
# zero; the window fits into the padded image. Return the `float32` result,
# $(N, O, H_\text{out}, W_\text{out})$. Do not change the inputs.
#
# Two budgets are measured:
#
# - **work**: the matrix products take no more FLOPs than $2 \cdot N \cdot O \cdot H_\text{out} \cdot
#   W_\text{out} \cdot \frac{C}{\text{groups}} \cdot K_h \cdot K_w$;
# - **memory**: at no time are there more bytes of new storage than the padded image, *one* copy of
#   all windows, three results and one copy of the weights take together.
#
# PyTorch's own convolutions and `unfold` of `torch.nn.functional` are off limits. The method
# `Tensor.unfold`, which makes a view, is not.
#
# <details><summary>Hint 1: seven dimensions</summary>
#
# Look for a view of shape `(N, groups, C // groups, Kh, Kw, Hout, Wout)`. Write down, for each
# dimension, how many elements one step moves: in terms of `x.stride()`, `stride` and `dilation`.
#
# </details>
# <details><summary>Hint 2: the contraction</summary>
#
# Split the weights into `(groups, O // groups, C // groups, Kh, Kw)`. The letter of the groups
# stands in both operands and in the result; three letters are summed away.
#
# </details>
# <details><summary>Hint 3: padding</summary>
#
# `F.pad` counts from the last dimension: `(left, right, top, bottom)`. The padded image is a new
# tensor with strides of its own, so pad before you ask for strides. `x` may begin anywhere in its
# storage; `as_strided` begins where `x` does, unless you give it another offset.
#
# </details>


# %% solution="conv2d"
def conv2d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: tuple[int, int] = (1, 1),
    padding: tuple[int, int] = (0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
) -> torch.Tensor:
    """Slide `weight` over `x` and contract.

    x: float32 (N, C, H, W); weight: float32 (O, C / groups, Kh, Kw); bias: float32 (O) or None
    returns: float32 (N, O, Hout, Wout)
    """
    ### BEGIN SOLUTION
    if any(padding):  # F.pad copies even where there is nothing to add
        x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    n, _, height, width = x.shape
    _, channels, kh, kw = weight.shape  # the channels of one group
    rows = (height - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    columns = (width - dilation[1] * (kw - 1) - 1) // stride[1] + 1

    sn, sc, sh, sw = x.stride()
    windows = x.as_strided(
        (n, groups, channels, kh, kw, rows, columns),
        # within a window a step is `dilation` pixels, from one window to the next it is `stride`
        (sn, sc * channels, sc, sh * dilation[0], sw * dilation[1], sh * stride[0], sw * stride[1]),
        x.storage_offset(),
    )
    filters = weight.unflatten(0, (groups, -1))
    result = torch.einsum("ngcijhw,gocij->ngohw", windows, filters).flatten(1, 2)
    return result if bias is None else result + bias[:, None, None]
    ### END SOLUTION


# %% grade="conv2d"
grade("conv2d")

# %% [markdown]
# `torch.nn.Conv2d` has four more arguments. `device` and `dtype` say where and as what its weights are made.
# `padding` may be `"same"`: as much as keeps the size, for stride 1 alone. And with `padding_mode` the border need
# not be zeros: it may be a mirror image (`"reflect"`), the edge again (`"replicate"`) or the other side
# (`"circular"`). An image without a batch, $(C, H, W)$, is taken too.
#
# Draw: show_cells({name: [(str(value), 1 < at < 6 and "row" or "border") for at, value in enumerate(F.pad(
# torch.arange(1.0, 5)[None], (2, 2), mode=mode).int().tolist()[0])] for name, mode in (("zeros", "constant"),
# ("reflect", "reflect"), ("replicate", "replicate"), ("circular", "circular"))}) | The row 1 2 3 4, padded by two
# on each side.

# %% [markdown] exercise="linear_as_conv"
# title: A linear layer is a convolution
# minutes: 25
# difficulty: 2
# points: 5
# parameters:
#   order:
#     public: [1, 2, 3]
#     among: [[2, 3, 1], [3, 2, 1], [1, 3, 2]]
#     says: "features in the order of dimensions {{order}}"
# prerequisites: [conv2d]
# teaches: >-
#   that a linear layer and a convolution whose window covers the whole input are one computation on
#   one set of weights, and what the convolution can do that the linear layer cannot.
# leaves out: the other direction for small windows, where the matrix is mostly zeros.
# off limits: []

# %% [markdown]
# It is said that a 1 × 1 convolution looks at each pixel alone and so gives up the "global" view of
# a fully connected layer. It does look at each pixel alone. And it does there what a linear layer
# does: it mixes all channels.

# %%
linear = torch.nn.Linear(5, 7)
vectors = torch.randint(-3, 4, (4, 5)).float()
pixels = vectors.T.reshape(1, 5, 2, 2)
by_conv = F.conv2d(pixels, linear.weight[:, :, None, None], linear.bias)
by_linear = linear(vectors).T.reshape(1, 7, 2, 2)
print(torch.allclose(by_conv, by_linear, atol=1e-5))

# %% [markdown]
# Four vectors, four pixels, one matrix. `nn.Linear` on the last dimension and a 1 × 1 convolution on
# the channels are the same product; only where the channels lie in memory differs.
#
# The classifier of an old network is a linear layer on a flattened image. It looks global because
# its input *is* the whole image. A convolution whose window is as large as the image does the same:
# it has one place to stand. Give it a larger image and it has several, and it answers at each of
# them. That is how a classifier becomes a detector without training.
#
# Draw: show_cells({f"row {row}": [f"{int(value)}" for value in line] for row, line in
# enumerate(F.conv_transpose2d(torch.ones(1, 1, 2, 4), torch.ones(1, 1, 3, 3))[0, 0].tolist())}) |
# A window of 3 × 3 on a map of 4 × 6 has eight places to stand. The numbers say how many of them
# see a pixel.
#
# **Predict.** A head trained on feature maps of 7 × 7 is turned into such a convolution and gets a
# map of 9 × 12. How many answers per class does it give?

# %%
predict(..., lambda: F.conv2d(torch.zeros(1, 1, 9, 12), torch.zeros(1, 1, 7, 7)).numel())

# %% [markdown]
# **Write `linear_as_conv(linear, size)`.** `linear` is an `nn.Linear` that was trained on feature
# #: if order == [1, 2, 3]
# maps $(N, C, H, W)$ flattened by `flatten(1)`; `size` is $(H, W)$. Return an `nn.Conv2d` that gives
# #: else
# maps $(N, C, H, W)$ flattened by `permute(0, {{order | join(", ")}}).flatten(1)`, not as PyTorch's
# own models do it; `size` is $(H, W)$. Return an `nn.Conv2d` that gives
# #: endif
# the same numbers, with shape $(N, O, 1, 1)$, on feature maps of that size, and slides over larger
# ones.
#
# - Its weight and bias are parameters that share the memory of the linear layer's. Nothing is
#   copied: when one is trained, so is the other.
# - Where the linear layer has no bias, the convolution has none. The dtype is the linear layer's.
# - Raise `ValueError` if $H \cdot W$ does not divide the number of input features.
#
# <details><summary>Hint 1: channels</summary>
#
# #: if order == [1, 2, 3]
# `flatten(1)` puts the channels outside and the columns inside. So the input features, in order,
# are $(C, H, W)$, and $C$ follows from the other two.
# #: else
# The input features are not in the order $(C, H, W)$. Split them into three dimensions in the order
# that they have; $C$ follows from the other two.
# #: endif
#
# </details>
# <details><summary>Hint 2: sharing</summary>
#
# `nn.Parameter(tensor)` keeps the memory of the tensor it is given. `weight.detach().view(...)` is
# a view without history.
#
# </details>
# <details><summary>Hint 3: no wasted weights</summary>
#
# `nn.Conv2d(..., device="meta")` makes a layer without memory; give it its parameters afterwards.
#
# </details>


# %% solution="linear_as_conv"
def linear_as_conv(linear: torch.nn.Linear, size: tuple[int, int]) -> torch.nn.Conv2d:
    """Return a convolution with the weights of `linear`, whose window is `size`.

    linear: trained on flattened feature maps (N, C, *size)
    returns: maps (N, C, H, W) to (N, O, H - size[0] + 1, W - size[1] + 1)
    """
    ### BEGIN SOLUTION
    channels, rest = divmod(linear.in_features, math.prod(size))
    if rest:
        raise ValueError(f"{linear.in_features} features are no whole number of {size} maps")
    # On meta nothing is allocated or drawn at random; all parameters are replaced anyway.
    conv = torch.nn.Conv2d(channels, linear.out_features, size, bias=False, device="meta")
    #: if order == [1, 2, 3]
    weight = linear.weight.detach().unflatten(1, (channels, *size))
    #: elif order == [2, 3, 1]
    weight = linear.weight.detach().unflatten(1, (*size, channels)).permute(0, 3, 1, 2)
    #: elif order == [3, 2, 1]
    weight = linear.weight.detach().unflatten(1, (*size[::-1], channels)).permute(0, 3, 2, 1)
    #: else
    weight = linear.weight.detach().unflatten(1, (channels, *size[::-1])).transpose(2, 3)
    #: endif
    conv.weight = torch.nn.Parameter(weight)
    if linear.bias is not None:
        conv.bias = torch.nn.Parameter(linear.bias.detach())
    return conv
    ### END SOLUTION


# %% grade="linear_as_conv"
grade("linear_as_conv")

# %% [markdown] sitting="attention"
# question: What does attention compute?
# reached: >-
#   Two products around a softmax, for heads that are views of one tensor. A mask takes part
#   before the softmax, and a row without keys has to be seen to.

# %% [markdown]
# ## From words to numbers: the shapes of BERT
#
# A transformer is matrix products from end to end. Follow one batch through a layer of BERT-base (the
# checkpoint `bert-base-uncased`): hidden size 768, twelve heads, twelve layers, a vocabulary of 30,522
# pieces of words and room for 512 of them in a row. We need shapes only, so all of it lives on the
# `meta` device, which has no memory.

# %%
with torch.device("meta"):
    batch, seq, hidden, heads = 2, 128, 768, 12
    words = torch.nn.Embedding(30_522, hidden)
    positions = torch.nn.Embedding(512, hidden)
    sentences = torch.nn.Embedding(2, hidden)
    ids = torch.zeros(batch, seq, dtype=torch.long)
    x = words(ids) + positions(torch.arange(seq)) + sentences(torch.zeros_like(ids))
    print(f"{'embeddings':24}", tuple(x.shape))
    q, k, v = (torch.nn.Linear(hidden, hidden)(x) for _ in range(3))
    print(f"{'queries':24}", tuple(q.shape))
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (q, k, v))
    print(f"{'queries, by head':24}", tuple(q.shape))
    scores = q @ k.transpose(-2, -1)
    print(f"{'scores':24}", tuple(scores.shape))
    context = scores.softmax(-1) @ v
    print(f"{'context, by head':24}", tuple(context.shape))
    x = x + torch.nn.Linear(hidden, hidden)(context.transpose(1, 2).flatten(-2))
    print(f"{'context, merged':24}", tuple(x.shape))
    inner = torch.nn.Linear(hidden, 4 * hidden)(x)
    print(f"{'inside the feed-forward':24}", tuple(inner.shape))
    x = x + torch.nn.Linear(4 * hidden, hidden)(F.gelu(inner))
    print(f"{'one layer later':24}", tuple(x.shape))

# %% [markdown]
# An embedding is a matrix product too, one with a matrix of zeros and ones that nobody writes down:
# it picks rows. The feed-forward part (FFN) sees each position by itself. Only attention lets
# positions look at each other. The scores, and the weights that the softmax makes of them, are all
# that grows with the *square* of the sequence.
#
# **Predict.** Where do most of a layer's weights live: `"attention"` (four matrices) or `"ffn"`?

# %%
predict(..., lambda: "ffn" if 2 * 4 * hidden * hidden > 4 * hidden * hidden else "attention")

# %% [markdown] exercise="split_heads"
# title: Split heads without a copy
# minutes: 20
# difficulty: 2
# points: 5
# short: true
# prerequisites: [broadcast_matmul]
# teaches: >-
#   that heads are a way to read the hidden dimension, and where the one copy of multi-head attention
#   comes from.
# leaves out: queries, keys and values packed into one tensor.
# off limits: []

# %% [markdown]
# Twelve heads of 64 are not twelve tensors. They are the 768 numbers of each position, read as a
# table of 12 × 64. Attention is computed per head, so the head has to come before the sequence:
#
# | step | shape |
# |---|---|
# | what a linear layer gives | `(batch, seq, hidden)` |
# | the hidden dimension split | `(batch, seq, heads, hidden // heads)` |
# | heads moved to the front | `(batch, heads, seq, hidden // heads)` |
#
# Both steps only edit sizes and strides. A popular shortcut gives the right shape in one step, and
# the wrong numbers. Three positions with two heads; each number says its position, then its place:

# %%
x = torch.tensor([[[10, 11, 12, 13], [20, 21, 22, 23], [30, 31, 32, 33]]])
print(x.view(1, 2, 3, 2)[0, 0].tolist())

# %% [markdown]
# **Predict.** Head 0 should hold the first two numbers of every position. What should have been
# printed? Write it as text, without spaces after the inner commas: `"[[10,11],…]"`.

# %%
predict(..., lambda: str(x[0, :, :2].tolist()).replace(" ", ""))

# %% [markdown]
# On the way back the head goes behind the sequence again, and the two last dimensions become one.
# Here a copy may be needed: after attention each head's numbers lie together, and no stride can
# walk through them position by position.
#
# Look: strides/view#shape=1x2x3x4&ops=transpose.1.2&at=0x2x1x1&target=1x3x8 | Two heads, one after
# the other in memory, moved behind the sequence: the last two dimensions do not merge, so putting
# them together copies.
#
# **Write `split_heads(x, heads)` and `merge_heads(y)`.** `x` has the shape `(..., seq, hidden)` with
# any number of leading dimensions, any dtype and any layout. `split_heads` returns
# `(..., heads, seq, hidden // heads)`, always as a view of `x`. Raise `ValueError` if `heads` does not
# divide `hidden`. `merge_heads` takes `(..., heads, seq, size)` and returns
# `(..., seq, heads * size)`: a view where strides can express it, as for the result of `split_heads`,
# and otherwise one copy, no more.
#
# <details><summary>Hint 1: splitting one dimension</summary>
#
# To cut one dimension in two is possible for every layout: the outer part takes longer steps.
# `x.unflatten(-1, (a, b))` does it, and so does `view`.
#
# </details>
# <details><summary>Hint 2: exchanging two</summary>
#
# `transpose(-3, -2)` counts from the end, so leading dimensions do not matter.
#
# </details>
# <details><summary>Hint 3: merging</summary>
#
# `reshape` and `flatten` make a view if there is one, and a copy if not. A `contiguous()` in front
# of them takes that choice away.
#
# </details>


# %% solution="split_heads"
def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Return (..., seq, hidden) as a view of shape (..., heads, seq, hidden // heads)."""
    ### BEGIN SOLUTION
    hidden = x.shape[-1]
    if hidden % heads:
        raise ValueError(f"{heads} heads do not divide a hidden size of {hidden}")
    # Splitting a dimension is always a view; a dimension can be cut at any stride.
    return x.unflatten(-1, (heads, hidden // heads)).transpose(-3, -2)
    ### END SOLUTION


def merge_heads(y: torch.Tensor) -> torch.Tensor:
    """Return (..., heads, seq, size) as (..., seq, heads * size), without a copy if possible."""
    ### BEGIN SOLUTION
    # flatten asks for a view first, and copies only if strides cannot say it.
    return y.transpose(-3, -2).flatten(-2)
    ### END SOLUTION


# %% grade="split_heads"
grade("split_heads")

# %% [markdown] exercise="attention"
# title: Attention, with every kind of mask
# minutes: 40
# difficulty: 3
# points: 8
# short: true
# prerequisites: [split_heads]
# teaches: >-
#   that attention is two matrix products around a softmax, what masks mean, and why a row with
#   nothing to look at turns into NaN, forward or backward, unless you see to it.
# leaves out: dropout, and key and value heads shared by several query heads.
# off limits: [attention]

# %% [markdown]
# $$\text{attention}(Q, K, V) = \text{softmax}\!\left(\frac{Q K^\top}{\sqrt{E}}\right) V$$
#
# Row $i$ of the scores says how well query $i$ fits each key. The softmax makes weights of them, and
# the result is a weighted mean of the values. The $\sqrt{E}$ keeps the scores of long vectors
# from being so far apart that the softmax picks one key and ignores the rest ("Attention Is All You
# Need", section 3.2.1).
#
# Not every query may look at every key. Padding is nobody's business, and a decoder must not see the
# future. Two kinds of mask are in use:
#
# - **boolean**: `True` means *may look*;
# - **additive**: a float that is added to the score, after the division. $-\infty$ forbids, a finite
#   number prefers or discourages.
#
# Beware: `torch.nn.MultiheadAttention` reads a boolean mask the other way round, `True` means
# forbidden. This exercise follows `scaled_dot_product_attention`.
#
# Draw: show_cells({f"query {query}": row for query, row in enumerate(torch.ones(5,
# 5).tril().bool().tolist())}, [f"key {key}" for key in range(5)], bare=True) | A decoder's mask
# as `tril` makes it: coloured is what a query may look at, itself and what came before.
#
# The trouble is a row in which everything is forbidden, such as a query in the padding. Then the
# formula of the softmax divides zero by zero:

# %%
row = torch.tensor([[0.5, 2.0, -1.0]])
print(row.masked_fill(torch.ones(1, 3, dtype=torch.bool), -torch.inf).softmax(-1))

# %% [markdown]
# Some put a large negative number in place of $-\infty$. That is no NaN, but neither is it right:

# %%
print(row.masked_fill(torch.ones(1, 3, dtype=torch.bool), -1e9).softmax(-1))
queries, keys = torch.ones(1, 2), torch.ones(3, 2)
print(F.scaled_dot_product_attention(queries, keys, keys, torch.zeros(1, 3, dtype=torch.bool)))

# %% [markdown]
# The query that may look at nothing now takes the mean of all that was forbidden.
# `scaled_dot_product_attention` returns zeros for such a row, as the last line shows.
#
# **Predict.** Replace the NaN by zero after the softmax, with `torch.where`, and the result is right.
# Is the gradient of the scores right as well? Write `"zeros"` or `"nan"`.


# %%
def gradient_after_where() -> str:
    scores = torch.zeros(1, 3, requires_grad=True)
    weights = (scores + torch.full((1, 3), -torch.inf)).softmax(-1)
    torch.where(weights.isnan(), 0.0, weights).sum().backward()
    return "nan" if bool(scores.grad.isnan().any()) else "zeros"


predict(..., gradient_after_where)

# %% [markdown]
# Backward, the softmax multiplies what comes in by its own result. What comes in is zero; zero times
# NaN is NaN. One such row is enough, and after the next step of the optimizer the weights that made
# the queries and keys are NaN, and all weights before them.
#
# **Write `attention(q, k, v, mask)`.** `q` is `(..., L, E)`, `k` is `(..., S, E)` and `v` is
# `(..., S, V)`, all with the same leading dimensions (none, one or many) and the same dtype, `float32`
# or `float64`, in any layout; $S$ and $E$ are at least 1, any other size may be 0. `mask` is `None`, or
# a tensor that broadcasts to `(..., L, S)`: boolean, or floats of the same dtype. Return `(..., L, V)`
# in the dtype of `q`.
#
# - Scores may be in the thousands; the result must be right.
# - A row in which everything is forbidden gives zeros, and no NaN reaches a gradient: through such a
#   row no gradient flows.
# - An additive mask holds finite numbers and $-\infty$. Do not change the inputs.
#
# <details><summary>Hint 1: two kinds of mask, one path</summary>
#
# Turn a boolean mask into scores of $-\infty$ with `masked_fill`. From there on both kinds look the
# same: a score is forbidden if it is $-\infty$.
#
# </details>
# <details><summary>Hint 2: large scores</summary>
#
# `torch.softmax` subtracts the row's maximum before it takes exponentials. If you write the softmax
# yourself, so must you.
#
# </details>
# <details><summary>Hint 3: the empty row</summary>
#
# The NaN must never arise. Give an empty row harmless scores *before* the softmax, and take its
# weights away after it. `masked_fill` lets no gradient through where it fills.
#
# </details>


# %% solution="attention"
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    """Return softmax(q kᵀ / √E + mask) v; rows that may look at nothing give zeros.

    q: (..., L, E); k: (..., S, E); v: (..., S, V); mask: broadcasts to (..., L, S)
    returns: (..., L, V)
    """
    ### BEGIN SOLUTION
    scores = (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5
    if mask is not None and mask.dtype is torch.bool:
        scores = scores.masked_fill(~mask, -math.inf)
    elif mask is not None:
        scores = scores + mask
    empty = (scores == -math.inf).all(-1, keepdim=True)
    # Filled before the softmax, so that no NaN arises; filled after it, so that nothing is taken.
    weights = torch.softmax(scores.masked_fill(empty, 0.0), dim=-1)
    return weights.masked_fill(empty, 0.0) @ v
    ### END SOLUTION


# %% grade="attention"
grade("attention")

# %% [markdown] sitting="long-context"
# question: How does attention get by without its table of scores?
# reached: >-
#   Distances become positions through strides. The softmax runs along with the scores, block by
#   block, and corrects what it has when a larger score comes.

# %% [markdown] exercise="relative_shift"
# title: Shift scores of distances into place
# minutes: 35
# difficulty: 4
# points: 5
# prerequisites: [attention]
# teaches: >-
#   that a table indexed by distance becomes a matrix indexed by position through strides alone, and
#   when it cannot.
# leaves out: how the distances' scores are learned; buckets of distances; rotary embeddings.
# off limits: []

# %% [markdown]
# Attention does not know the order of its keys. One cure is to add to each score something that
# depends on the distance $j - i$ from query to key. The simplest is a **bias**: a table with one
# number for each distance from $-(L-1)$ to $S-1$. The matrix it stands for is constant along its
# diagonals:

# %%
queries, keys = 3, 4
table = torch.arange(queries + keys - 1) * 10
distance = torch.arange(keys) - torch.arange(queries)[:, None]
print(table[distance + queries - 1])

# %% [markdown]
# Each row is the one above, moved by one. Transformer-XL goes further: there the number depends on
# the query as well. A product of the queries with an embedding of each distance gives `scores`, with
# one row per query and one column per *distance*. What is to be added to $QK^\top$ has one row per
# query and one column per *key*:
#
# $$\text{out}_{ij} = \text{scores}_{i,\; j - i + L - 1}$$
#
# `gather` would do it, with an index of the result's shape. But look at the addresses. Going one key
# to the right moves one column to the right. Going one query down moves one row down and one column
# to the *left*.
#
# **Predict.** `scores` is contiguous, $L = 3$ by $3 + 4 - 1 = 6$. What is the stride of the result's
# first dimension?

# %%
predict(..., lambda: torch.empty(3, 6).stride(0) - torch.empty(3, 6).stride(1))

# %% [markdown]
# **Write `relative_shift(scores, keys)`.** `scores` has the shape $(\ldots, L, L + S - 1)$ with any
# number of leading dimensions, any dtype and any layout; `keys` is $S$; $L$ and $S$ are at least 1.
# Return the tensor above, of shape $(\ldots, L, S)$.
#
# - Where strides can express the result, it is a view of `scores`.
# - Strides cannot be negative. Where they would have to be, return a tensor of its own; the values
#   count all the same.
# - Raise `ValueError` if the last dimension is not $L + S - 1$.
#
# <details><summary>Hint 1: where it begins</summary>
#
# Element $(0, 0)$ of the result is `scores[..., 0, L - 1]`. Count from `scores.storage_offset()`.
#
# </details>
# <details><summary>Hint 2: two strides</summary>
#
# With strides $r$ per row and $c$ per column the result has $r - c$ and $c$. Leading dimensions keep
# theirs.
#
# </details>
# <details><summary>Hint 3: when it cannot</summary>
#
# For a transposed `scores`, or one whose rows are expanded, $r < c$. A contiguous copy has $r \ge c$
# always, and the same lines work on it. With $L = 1$ there is no second row, and any stride will do for it.
#
# </details>


# %% solution="relative_shift"
def relative_shift(scores: torch.Tensor, keys: int) -> torch.Tensor:
    """Return out[..., i, j] = scores[..., i, j - i + L - 1].

    scores: (..., L, L + keys - 1)
    returns: (..., L, keys), a view where strides can express it
    """
    ### BEGIN SOLUTION
    queries, distances = scores.shape[-2:]
    if distances != queries + keys - 1:
        raise ValueError(f"{distances} distances do not fit {queries} queries and {keys} keys")
    if queries > 1 and scores.stride(-2) < scores.stride(-1):
        scores = scores.contiguous()
    *lead, row, column = scores.stride()
    return scores.as_strided(
        (*scores.shape[:-1], keys),
        # One query down is one row down and one column back.
        (*lead, max(row - column, 0), column),
        scores.storage_offset() + (queries - 1) * column,
    )
    ### END SOLUTION


# %% grade="relative_shift"
grade("relative_shift")

# %% [markdown] exercise="streaming_attention"
# title: Attention that never sees all its scores
# minutes: 50
# difficulty: 5
# points: 7
# prerequisites: [attention]
# teaches: >-
#   the online softmax: how a softmax over a million keys is computed block by block, in one pass, with
#   memory for one block.
# leaves out: the backward pass, which computes the scores again; blocks of queries; fused kernels.
# off limits: [attention]

# %% [markdown]
# The scores of 32 heads over 100,000 tokens would take 1.28 terabytes in `float32`. Nobody
# stores them. Long contexts exist because the softmax can be computed *while* the scores are made.
#
# Look: matmul/costs#a=32x1000x64&b=32x64x1000&dtype=float32 | The scores of 32 heads over 1,000
# tokens: what is written is the scores. With twice as many tokens they are four times as large.
#
# Take the denominator first. It is a sum of $e^{s - m}$, and the maximum $m$ is known only at the
# end. Keep the maximum of what you have seen so far, and whenever it grows, correct the sum:
#
# $$\ell_\text{new} = \ell_\text{old} \cdot e^{m_\text{old} - m_\text{new}}
#   + \sum_{\text{block}} e^{s - m_\text{new}}$$

# %%
scores = torch.tensor([1.0, 3.0, 2.0, 7.0, 5.0, 7.0])
top, weight_sum = torch.tensor(-torch.inf), torch.tensor(0.0)
for block in scores.split(2):
    new_top = torch.maximum(top, block.max())
    weight_sum = weight_sum * torch.exp(top - new_top) + torch.exp(block - new_top).sum()
    top = new_top
    print(f"after {block.tolist()}: maximum {top.item():.0f}, sum {weight_sum.item():.4f}")
print(f"in one go: {torch.exp(scores - scores.max()).sum().item():.4f}")

# %% [markdown]
# The numerator is a sum of values with the same weights, so the same correction keeps it right. At
# the end you divide one by the other. That is the idea of FlashAttention, without the hardware.
#
# **Predict.** A first block is forbidden altogether, so all its scores are $-\infty$, and so is the
# maximum. What is $e^{s-m}$ then? Write it as Python prints it.

# %%
predict(..., lambda: torch.exp(torch.tensor(-torch.inf) - torch.tensor(-torch.inf)).item())

# %% [markdown]
# **Write `streaming_attention(q, k, v, mask, block)`.** Arguments and result are those of
# `attention`, all in `float32`, without gradients. `block` is a positive number of keys, which need
# not divide $S$. Take the keys in order, `block` of them at a time.
#
# Two budgets are measured. With $B$ leading elements altogether (the product of the leading
# dimensions):
#
# - **memory**: at no time are there more new bytes than eight times those of
#   $B \cdot (L \cdot \text{block} + \text{block} \cdot (E + V) + L \cdot (E + V))$ numbers in
#   `float32`. $S$ does not occur in it;
# - **work**: one pass. The matrix products take no more than $2 B L S (E + V)$ FLOPs.
#
# A mask may have size 1 in any dimension, the last included. Rows in which everything is forbidden
# give zeros.
#
# <details><summary>Hint 1: what to carry along</summary>
#
# Three tensors: the maximum `(..., L, 1)`, the sum of weights `(..., L, 1)` and the weighted sum of
# values `(..., L, V)`. Every block updates all three.
#
# </details>
# <details><summary>Hint 2: nothing seen yet</summary>
#
# While the maximum is $-\infty$, subtract zero instead. Then $e^{-\infty - 0}$ is zero, as it should
# be, for the block's weights and for the correction.
#
# </details>
# <details><summary>Hint 3: a piece of a mask</summary>
#
# `mask.expand(*mask.shape[:-1], S)` costs no memory, and then each block can cut out its own columns.
# Convert a mask only after cutting.
#
# </details>


# %% solution="streaming_attention"
def streaming_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, block: int
) -> torch.Tensor:
    """Return what `attention` returns, with memory for one block of keys.

    q: float32 (..., L, E); k: (..., S, E); v: (..., S, V); mask: broadcasts to (..., L, S)
    returns: float32 (..., L, V)
    """
    ### BEGIN SOLUTION
    keys = k.shape[-2]
    if mask is not None:
        mask = mask.expand(*mask.shape[:-1], keys)  # a view, also where a column stands for all
    top = q.new_full((*q.shape[:-1], 1), -math.inf)
    total = torch.zeros_like(top)
    result = q.new_zeros(*q.shape[:-1], v.shape[-1])

    for start in range(0, keys, block):
        part = slice(start, start + block)
        scores = (q @ k[..., part, :].transpose(-2, -1)) * q.shape[-1] ** -0.5
        if mask is not None and mask.dtype is torch.bool:
            scores = scores.masked_fill(~mask[..., part], -math.inf)
        elif mask is not None:
            scores = scores + mask[..., part]

        new_top = torch.maximum(top, scores.amax(-1, keepdim=True))
        # -inf - -inf is NaN: where nothing was allowed so far, subtract zero instead.
        finite_top = new_top.masked_fill(new_top == -math.inf, 0.0)
        weights = torch.exp(scores - finite_top)
        correction = torch.exp(top - finite_top)
        total = total * correction + weights.sum(-1, keepdim=True)
        result = result * correction + weights @ v[..., part, :]
        top = new_top

    return result / total.masked_fill(total == 0, 1.0)
    ### END SOLUTION


# %% grade="streaming_attention"
grade("streaming_attention")

# %% [markdown] sitting="formulas"
# question: How does a formula become loops?
# reached: >-
#   Call it once with arguments that remember, and you have data. The order of the loops is a
#   second decision, and most orders give the same result.

# %% [markdown] exercise="compute"
# title: Record a formula
# minutes: 40
# difficulty: 4
# points: 6
# prerequisites: [mm_by_hand]
# teaches: >-
#   how a domain-specific language inside Python turns a function into data: by calling it once, with
#   arguments that remember what is done to them.
# leaves out: data types, several results, and formulas that call other formulas.
# off limits: []

# %% [markdown]
# A matrix product in PyTorch is a call: what it does was decided when the kernel was written. Tensor
# compilers such as TVM start one step earlier, from a *formula*:
#
# $$C_{ij} = \sum_k A_{ik} B_{kj}$$
#
# It says what each element is and nothing about how to get there: no loops, no order, no memory. In
# a **tensor-expression language** you write it as a Python function of the indices. The language
# never computes with it. It calls the function once, with stand-ins for $i$ and $j$, and every
# operation on a stand-in, instead of doing something, *notes* what was asked. `torch.fx` traces a
# model in this way: its stand-in is `Proxy`, in `torch/fx/proxy.py`.
#
# Here is the smallest such recorder:


# %%
class Note:
    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: object) -> "Note":
        return Note(f"({self.text} + {getattr(other, 'text', other)})")

    def __mul__(self, other: object) -> "Note":
        return Note(f"({self.text} * {getattr(other, 'text', other)})")


formula = lambda i, j: i * 5 + j  # noqa: E731
print(formula(2, 3), formula(Note("i"), Note("j")).text)

# %% [markdown]
# **Predict.** What does `formula(Note("i"), 3)` give, and what does `3 + Note("i")`? The second one
# raises; write the type of the exception.

# %%


def number_first() -> str:
    try:
        return (3 + Note("i")).text
    except Exception as error:
        return type(error).__name__


predict(..., number_first)

# %% [markdown]
# `3 + x` first asks the number, which knows nothing of notes, and then `x.__radd__`. You will need
# the reflected methods too.
#
# Text is for people. For a compiler the notes are **nodes**: tuples whose first member says what
# they are.
#
# | node | stands for |
# |---|---|
# | `("number", 2.5)` | a number, as it was given: 2 stays whole |
# | `("index", "i")` | an index |
# | `("read", "A", (node, node))` | `A[node, node]`; one node per dimension of `A`, a tuple always |
# | `(op, left, right)` | `op` is `"+"`, `"-"`, `"*"`, `"//"`, `"%"`, `"<"`, `"<="`, `">"`, `">="` or `"&"` |
# | `("where", condition, yes, no)` | `yes` where the condition holds, else `no` |
# | `("sum", "k", 3, body)` | the sum of `body` over `k` from 0 to 2 |
#
# **Write the language**: two classes and three functions.
#
# - `Expr(node)` holds a node under `.node`. The operators of the table, with an `Expr` or a number on
#   either side, give an `Expr`. (For `<` and its kin Python itself exchanges the sides: `3 < x`
#   becomes `x > 3`.) A minus sign in front works too. Asking an `Expr` whether it is true, as `if`,
#   `and` and `0 <= i < n` do, raises `TypeError`: nobody knows yet.
# - `Buffer(name)[i]` and `Buffer(name)[i, j]` give an `Expr` that reads. An index is an `Expr` or a
#   whole number.
# - `where(condition, yes, no)` gives an `Expr`; `yes` and `no` may be numbers.
# - `total(extents, formula)` sums: `total((3, 2), lambda r, s: …)` is the sum over $r$ from 0 to 2 of
#   the sum over $s$ from 0 to 1. The names are those of the function's parameters. TVM says
#   `reduce_axis` for what a parameter is here.
# - `compute(shape, formula)` returns the program, a `dict`: under `"axes"` a tuple of pairs
#   `(name, extent)` in order, under `"body"` the node. A formula may return a number.
#
# `total` and `compute` raise `ValueError` if the function has not one parameter per extent.
#
# <details><summary>Hint 1: one function for all operators</summary>
#
# Write one function of an operator's symbol and its two sides, that turns both sides into nodes and
# makes the `Expr`. Every operator is then one line.
#
# </details>
# <details><summary>Hint 2: names of parameters</summary>
#
# `list(inspect.signature(formula).parameters)`.
#
# </details>
# <details><summary>Hint 3: truth</summary>
#
# Python asks `__bool__`. Raise there, and say in the message what to write instead: `where(…)` for
# `if`, `&` for `and`.
#
# </details>


# %% solution="compute"
class Expr:
    """A formula so far: what is done to it is recorded in `node`."""

    def __init__(self, node: tuple) -> None:
        self.node = node

    def __add__(self, other: object) -> "Expr":
        ### BEGIN SOLUTION
        return Expr.binary("+", self, other)

    @staticmethod
    def node_of(value: object) -> tuple:
        """Return the node of an Expr, or make one of a number."""
        return value.node if isinstance(value, Expr) else ("number", value)

    @staticmethod
    def binary(op: str, left: object, right: object) -> "Expr":
        """Record an operation on two sides, either of which may be a number."""
        return Expr((op, Expr.node_of(left), Expr.node_of(right)))

    def __radd__(self, other: object) -> "Expr":
        return Expr.binary("+", other, self)

    def __sub__(self, other: object) -> "Expr":
        return Expr.binary("-", self, other)

    def __rsub__(self, other: object) -> "Expr":
        return Expr.binary("-", other, self)

    def __mul__(self, other: object) -> "Expr":
        return Expr.binary("*", self, other)

    def __rmul__(self, other: object) -> "Expr":
        return Expr.binary("*", other, self)

    def __floordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", self, other)

    def __rfloordiv__(self, other: object) -> "Expr":
        return Expr.binary("//", other, self)

    def __mod__(self, other: object) -> "Expr":
        return Expr.binary("%", self, other)

    def __rmod__(self, other: object) -> "Expr":
        return Expr.binary("%", other, self)

    def __lt__(self, other: object) -> "Expr":
        return Expr.binary("<", self, other)

    def __le__(self, other: object) -> "Expr":
        return Expr.binary("<=", self, other)

    def __gt__(self, other: object) -> "Expr":
        return Expr.binary(">", self, other)

    def __ge__(self, other: object) -> "Expr":
        return Expr.binary(">=", self, other)

    def __and__(self, other: object) -> "Expr":
        return Expr.binary("&", self, other)

    def __neg__(self) -> "Expr":
        return Expr.binary("-", 0, self)

    def __bool__(self) -> bool:
        # A tracer sees one call. It cannot follow both sides of an `if`.
        raise TypeError("not known yet: write where(...) for `if`, and & for `and`")

    ### END SOLUTION


class Buffer:
    """A tensor in a formula: known by name, read by index."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, index: object) -> Expr:
        ### BEGIN SOLUTION
        indices = index if isinstance(index, tuple) else (index,)
        return Expr(("read", self.name, tuple(Expr.node_of(i) for i in indices)))
        ### END SOLUTION


def where(condition: Expr, yes: object, no: object) -> Expr:
    """Return `yes` where the condition holds, else `no`."""
    ### BEGIN SOLUTION
    return Expr(("where", *map(Expr.node_of, (condition, yes, no))))
    ### END SOLUTION


def total(extents: tuple[int, ...], formula: object) -> Expr:
    """Return the sum of `formula` over indices of these extents."""
    ### BEGIN SOLUTION
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    # strict: zip itself raises ValueError where names and extents are not as many
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        body = ("sum", name, extent, body)
    return Expr(body)
    ### END SOLUTION


def compute(shape: tuple[int, ...], formula: object) -> dict:
    """Return the program whose element at each index is what `formula` says."""
    ### BEGIN SOLUTION
    names = list(inspect.signature(formula).parameters)
    body = Expr.node_of(formula(*(Expr(("index", name)) for name in names)))
    return {"axes": tuple(zip(names, shape, strict=True)), "body": body}
    ### END SOLUTION


# %% grade="compute"
grade("compute")

# %% [markdown]
# With your language three programs fit on a page: a vector sum, a matrix product, and a convolution
# with padding, in which an index may lie outside the image and a zero stands there.
#
# In TVM, `te.compute` and `te.reduce_axis` are what you have written. Older texts go on with
# `te.create_schedule` and `tvm.lower`, which prints loops like those of your next exercise. TVM 0.20 has no
# `create_schedule` any more ([issue 17914](https://github.com/apache/tvm/issues/17914)): there a
# `tir.Schedule` rewrites the loops themselves. (Not run here.)


# %%
def inside(r: Expr, n: int) -> Expr:
    return (r >= 0) & (r < n)


if written("compute"):
    A, B, X, W = (Buffer(name) for name in "ABXW")
    vector_add = compute((1024,), lambda i: A[i] + B[i])
    gemm = compute((4, 5), lambda i, j: total((3,), lambda k: A[i, k] * B[k, j]))
    convolution = compute(
        (6,),
        lambda i: total((3,), lambda d: where(inside(i + d - 1, 6), X[i + d - 1], 0.0) * W[d]),
    )
    print(gemm)

# %% [markdown] exercise="loop_nest"
# title: From a formula to loops, in any order
# minutes: 50
# difficulty: 5
# points: 6
# prerequisites: [compute]
# teaches: >-
#   that what is computed and in which order are two things; and what changes when a sum's loop leaves
#   its place inside.
# leaves out: tiling, vector and parallel loops, and fusing several formulas.
# off limits: []

# %% [markdown]
# The formula does not say in which order. The **schedule** does, and it decides how fast the result
# comes. Here is one formula, the product of two matrices, and two schedules:
#
# ```python
# for i in range(4):                       for i in range(4):
#     for j in range(5):                       for j in range(5):
#         out[i, j] = 0                            out[i, j] = 0
# for i in range(4):                       for k in range(3):
#     for j in range(5):                       for i in range(4):
#         for k in range(3):                       for j in range(5):
#             out[i, j] += A[i, k] * B[k, j]           out[i, j] += A[i, k] * B[k, j]
# ```
#
# Left, `B` is read down its columns, far apart in memory. Right, everything in the innermost loop
# lies side by side, but each element of `out` is visited three times, with other work in between. So
# the sums must be set to zero *before*, in loops of their own.
#
# **Predict.** How many reads of `A` does the right-hand schedule make, all in all?

# %%
predict(..., lambda: sum(1 for k in range(3) for i in range(4) for j in range(5)))

# %% [markdown]
# **Write `loop_nest(program, order)`.** `program` is what `compute` returns. Sums stand outside
# everything else, if there are any: the body is a node without a sum, within one or more `"sum"`
# nodes. `order` is a tuple of all names, those of the sums included, from the outermost loop to the
# innermost. Return Python source, a string:
#
# - it writes to `out` and reads the buffers by their names, in the form `A[i]` or `A[i, k]`, and
#   `out[()]` where a result has no dimension; run by `exec`, it leaves the result in `out`, whatever
#   `out` held before;
# - the loops over the body run in the given order, and the body is evaluated anew each time: no
#   reading ahead, nothing kept for later;
# - what is not needed is not evaluated, for it may read outside of a buffer: the other side of a
#   `where`, and what stands behind an `&` whose left side does not hold.
#
# Raise `ValueError` if `order` does not hold every name once. Extents may be zero; a sum of nothing
# is zero. A number may be negative, infinite or NaN. All names are different from each other and from
# `out`.
#
# <details><summary>Hint 1: two steps</summary>
#
# One function turns a node into the text of an expression, calling itself for the parts. Another
# writes nested `for` lines around a statement.
#
# </details>
# <details><summary>Hint 2: parentheses</summary>
#
# `("*", ("+", a, b), c)` is not `a + b * c`. Put parentheses around every operation; nobody has to
# read them.
#
# </details>
# <details><summary>Hint 3: one statement or two</summary>
#
# Without a sum `out[i] = …` is enough. With one, first a nest over the axes of the result that sets
# zeros, then the nest in `order` with `+=`.
#
# </details>


# %% solution="loop_nest"
def loop_nest(program: dict, order: tuple[str, ...]) -> str:
    """Return Python source that computes `program` into `out`, its loops in this order."""

    ### BEGIN SOLUTION
    def place(name: str, indices: Iterable[str]) -> str:
        return f"{name}[{', '.join(indices) or '()'}]"

    def text(node: tuple) -> str:
        match node:
            case ("number", value):
                # `inf` and `nan` would be names; a literal beyond the range is infinite
                return repr(value).replace("inf", "1e999").replace("nan", "(1e999 - 1e999)")
            case ("index", name):
                return name
            case ("read", name, indices):
                return place(name, map(text, indices))
            case ("where", condition, yes, no):
                # Python evaluates one side only, which is what makes padding possible
                return f"({text(yes)} if {text(condition)} else {text(no)})"
            case ("&", left, right):
                return f"({text(left)} and {text(right)})"
            case (op, left, right):
                return f"({text(left)} {op} {text(right)})"

    def nest(names: tuple[str, ...], statement: str) -> list[str]:
        lines = [f"{'    ' * d}for {n} in range({extents[n]}):" for d, n in enumerate(names)]
        return [*lines, "    " * len(names) + statement]

    extents = dict(program["axes"])
    axes = tuple(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        extents[name] = extent
    if sorted(order) != sorted(extents):
        raise ValueError(f"the loops are {sorted(extents)}, the order names {sorted(order)}")

    out = place("out", axes)
    if len(extents) == len(axes):
        return "\n".join(nest(order, f"{out} = {text(body)}"))
    # A sum may be visited many times, with other work in between: it starts at zero beforehand.
    return "\n".join([*nest(axes, f"{out} = 0"), *nest(order, f"{out} += {text(body)}")])
    ### END SOLUTION


# %% grade="loop_nest"
grade("loop_nest")

# %%
if written("compute", "loop_nest"):
    print(loop_nest(gemm, ("k", "i", "j")))

# %% [markdown]
# ## The innermost loop in lanes
#
# A vector unit does many turns of the innermost loop at once. Its registers have a fixed width: 128 bytes
# in HVX, the vector unit of Qualcomm's Hexagon processors, in its wide mode. Each element has a **lane**:
#
# | type | lanes | holds |
# |---|---|---|
# | int8 | 128 | -128 to 127 |
# | int16 | 64 | -32768 to 32767 |
# | int32 | 32 | -2147483648 to 2147483647 |
#
# Two things follow that no formula mentions. The first is **widening**: a product of uint8 and int8
# needs 16 bits.
#
# **Predict.** Each of the two products below fits into int16, and PyTorch gives them that type. What is
# their sum in int16?

# %%
pixels = torch.tensor([255, 255], dtype=torch.uint8)
weights = torch.tensor([-128, -128], dtype=torch.int8)
print((pixels * weights).tolist(), (pixels * weights).dtype)
predict(..., lambda: (pixels * weights).sum(dtype=torch.int16).item())

# %% [markdown]
# The true sum is -65280; in 16 bits it wraps. So HVX has an instruction that multiplies four pairs of
# bytes and adds all four products to a lane of int32. The other thing is the **tail**. Where 128 does not
# divide the extent, the last register is not full, and its other lanes must not count.
#
# Draw: show_cells({f"register {r}": ["element" if r * 16 + lane < 40 else "" for lane in range(16)]
# for r in range(3)}, bare=True) | 40 elements in registers of 16 lanes. Half of the last one is tail.
#
# Zeros are a good filling for a sum of products; a maximum needs another. And the order changes: each lane
# sums four of every 128 elements, and the lanes meet at the end. With integers that is free as long as nothing
# overflows. With floats it may change the last bits. All of it, written out:


# %%
def dot_in_lanes(x, w, lanes=128):
    """Return the sum of products of uint8 `x` and int8 `w`, register by register."""
    sums = torch.zeros(lanes // 4, dtype=torch.int32)  # one register: int32 is four bytes wide
    registers = 0
    for start in range(0, x.numel(), lanes):
        full = min(lanes, x.numel() - start)
        xs, ws = torch.zeros(lanes, dtype=torch.uint8), torch.zeros(lanes, dtype=torch.int8)
        xs[:full], ws[:full] = x[start : start + full], w[start : start + full]
        sums += (xs.int() * ws.int()).view(-1, 4).sum(1, dtype=torch.int32)
        registers += 1
    return sums.sum().item(), registers  # lanes meet once, after the loop


pixels, weights = pixels[:1].repeat(300), weights[:1].repeat(300)
lane_sum, registers = dot_in_lanes(pixels, weights)
print("lanes:  ", lane_sum, "of", registers, "registers,", registers * 128 - 300, "lanes idle")
print("int64:  ", (pixels.long() * weights.long()).sum().item())
print("int16:  ", (pixels * weights).sum(dtype=torch.int16).item())

# %% [markdown] sitting="schedules"
# question: What may a schedule change?
# reached: >-
#   The order in which statements run, and never which ones run. Every order will do in which each
#   comes after those whose results it reads.

# %% [markdown]
# ## One tile after the other
#
# Some orders are better than others because of memory. Here is the transpose of a matrix:
#
# ```python
# for i in range(16):
#     for j in range(16):
#         out[j, i] = A[i, j]
# ```
#
# `A` is read along its rows, and `out` is written down its columns. Exchange the loops, and it is the
# other way round. But memory comes in **lines** of neighbouring elements, and a cache keeps only a
# few of them. The toy below has lines of four elements and room for eight lines; the one unused for
# longest makes room. A **tile** is a small square of the matrix that is done before the next begins:


# %%
def lines_fetched(order, line=4, room=8):
    """Return how many lines come from memory for `out[j, i] = A[i, j]`."""
    cache, fetched = [], 0  # the line used last stands at the end
    for i, j in order:
        for place in (("A", i, j // line), ("out", j, i // line)):
            if place in cache:
                cache.remove(place)
            else:
                fetched += 1
            cache.append(place)
            del cache[:-room]
    return fetched


def in_tiles(size, extent=16):
    """Return all pairs below `extent`, one tile after the other."""
    starts = range(0, extent, size)
    return [
        (i, j)
        for io in starts
        for jo in starts
        for i in range(io, io + size)
        for j in range(jo, jo + size)
    ]


pairs_in_order = {
    "rows": in_tiles(16),
    "columns": [(i, j) for j in range(16) for i in range(16)],
    "tiles of 2": in_tiles(2),
    "tiles of 4": in_tiles(4),
    "tiles of 8": in_tiles(8),
}
print("rows:", lines_fetched(pairs_in_order["rows"]), "lines for 256 pairs")

# %% [markdown]
# Draw: show_cells({f"i = {i}": [(in_tiles(3, 6).index((i, j)), (i // 3, j // 3)) for j in range(6)]
# for i in range(6)}, [f"j = {j}" for j in range(6)]) | Tiles of 3 × 3 in a matrix of 6 × 6: the
# numbers say when each pair has its turn, the colours in which tile.
#
# **Predict.** Each pair is copied once, in every order. Which of the five orders fetches the fewest
# lines? Write its name, as above.

# %%
fetched = {name: lines_fetched(order) for name, order in pairs_in_order.items()}
predict(..., lambda: min(fetched, key=fetched.get))

# %% [markdown]
# A tile of 4 touches four lines of `A` and four of `out`. There is room for eight, so each of the 128 lines
# comes once. A single row of a tile of 8 touches ten: before the next row begins, some are gone.
#
# Draw: show_bars(fetched, "lines") | What each order fetches.

# %% [markdown]
# ## Which orders are allowed
#
# A transpose may run in any order, as no statement reads what another one writes. Here is one that
# does:
#
# ```python
# for i in range(1, 3):
#     for j in range(2):
#         a[i][j] = a[i - 1][j + 1] + 1
# ```
#
# **Predict.** `a` is 3 × 3, all zeros. As it stands, `a[2][0]` becomes 2. Now exchange the two
# loops. What does it become?


# %%
def loops_exchanged():
    a = [[0] * 3 for _ in range(3)]
    for j in range(2):
        for i in range(1, 3):
            a[i][j] = a[i - 1][j + 1] + 1
    return a[2][0]


predict(..., loops_exchanged)

# %% [markdown]
# `a[2][0]` needs `a[1][1]`, and with the loops exchanged that is not written yet. Such a pair is a
# **dependence**. From the one that writes to the one that reads it is one step in $i$ and minus one
# in $j$: the **distance** is $(1, -1)$. The loops run in the order $i, j$, so what counts is the
# first number that is not zero: 1, the writer comes first. Exchange the loops and the distance is
# $(-1, 1)$: the reader comes first. That is how one tells by hand. After splits and fuses one looks
# at the visits themselves.
#
# Draw: show_cells({f"i = {i}": [(j * 3 + i, "too early" if i > 0 and j < 3 else "needs nothing") for
# j in range(4)] for i in range(3)}, [f"j = {j}" for j in range(4)]) | Distance (1, -1) with the loops
# exchanged: the numbers say when each pair has its turn. What a pair needs stands one row up and one
# column to the right, and its number is larger.

# %% [markdown] exercise="reschedule"
# title: Split, reorder, fuse, vectorize
# minutes: 60
# difficulty: 5
# points: 6
# prerequisites: [loop_nest]
# teaches: >-
#   that a schedule is a program that rewrites loops and leaves their visits alone; where a guard comes
#   from; and how one tells whether a new order is allowed.
# leaves out: several statements, parallel loops, and the choice of a schedule.
# off limits: []

# %% [markdown]
# A tensor compiler makes an order from plain loops by a few **primitives**. TVM calls them so:
#
# | primitive | does |
# |---|---|
# | split | makes two loops of one: blocks outside, places in a block inside |
# | reorder | exchanges loops |
# | fuse | makes one loop of two |
# | vectorize | does all turns of the innermost loop at once, in lanes |
#
# Tiling is two splits and a reorder. To rewrite loops you need them as data. Here a **nest** is a
# `dict`, and its nodes are those of `compute`: numbers, indices and operators.
#
# | key | holds |
# |---|---|
# | `"loops"` | pairs of a name and an extent, the outermost first |
# | `"index"` | for each axis of the formula a node, made from the names of the loops |
# | `"guards"` | nodes: a turn in which one of them does not hold is left out |
# | `"needs"` | distances of dependences |
# | `"lanes"` | the name of the innermost loop if that runs in lanes, or `None` |
#
# `visits` runs the loops, and notes which index tuples the statement is run for. It returns a list
# for each step in time: without lanes one tuple, or none where a guard does not hold.

# %%
import itertools
import operator

OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
OPERATORS |= {"//": operator.floordiv, "%": operator.mod, "&": operator.and_}
OPERATORS |= {"<": operator.lt, "<=": operator.le}
OPERATORS |= {">": operator.gt, ">=": operator.ge}


def value(node, at):
    """Return what a node is worth where the loops stand at `at`."""
    match node:
        case ("number", number):
            return number
        case ("index", name):
            return at[name]
        case (op, left, right):
            return OPERATORS[op](value(left, at), value(right, at))


def visits(nest):
    """Return the index tuples that a nest visits: a list for each step."""
    names = [name for name, _ in nest["loops"]]
    steps = []
    for turn in itertools.product(*(range(n) for _, n in nest["loops"])):
        at = dict(zip(names, turn, strict=True))
        if nest["lanes"] is None or at[nest["lanes"]] == 0:
            steps.append([])
        if all(value(guard, at) for guard in nest["guards"]):
            indices = nest["index"].values()
            steps[-1].append(tuple(value(node, at) for node in indices))
    return steps


def nest_of(needs=(), **extents):
    """Return the nest that has a loop for each axis, in this order."""
    return {
        "loops": tuple(extents.items()),
        "index": {name: ("index", name) for name in extents},
        "guards": (),
        "needs": needs,
        "lanes": None,
    }


print(nest_of(i=2, j=3))
print(visits(nest_of(i=2, j=3)))

# %% [markdown]
# And here a loop over ten indices is split by hand, into blocks of four. Three blocks of four are
# twelve turns. So a condition must keep two of them from reading and writing beyond the end: a
# **guard**. (TVM says predicate.)

# %%
block, place = ("index", "block"), ("index", "place")
i_now = ("+", ("*", block, ("number", 4)), place)
by_fours = {
    "loops": (("block", 3), ("place", 4)),
    "index": {"i": i_now},
    "guards": (),
    "needs": (),
    "lanes": None,
}
guarded = by_fours | {"guards": (("<", i_now, ("number", 10)),)}
for nest in (by_fours, guarded):
    print([i for together in visits(nest) for (i,) in together])

# %% [markdown]
# `"needs"` holds distances: tuples with one number for each axis. With `((1, -1),)` the visit of
# $(i, j)$ needs that of $(i - 1, j + 1)$, if the nest has it. A running sum, `a[i] = a[i - 1] + x[i]`,
# has `((1,),)`. Lanes are stricter still: what is visited in one step happens at once, and each lane
# reads before any lane has written.
#
# **Write `reschedule(nest, steps)`.** `nest` is such a `dict`, without lanes. `steps` is a list; its
# members are taken one after the other:
#
# | step | what becomes of the loops |
# |---|---|
# | `("split", "i", 4, "io", "ii")` | `io`, and directly inside it `ii`, take the place of `i`. Each turn of `io` is a block of four turns of `i`, from the first one on, and `ii` has the extent 4. The last block may be incomplete. |
# | `("fuse", "i", "j", "ij")` | `ij` takes the place of `i` and of `j`, which stands directly inside `i`. Its extent is the product of theirs, and all visits keep their order. |
# | `("reorder", "k", "i")` | the loops named take the places that these loops have now, in the order named; the others stay. |
# | `("vectorize", "ii")` | the innermost loop runs in lanes. This is always the last step. |
#
# Return the new nest, a `dict` with the five keys; the given one stays as it is.
#
# - It visits each index tuple that the given nest visits, once, and no other, in the order that the
#   steps ask for.
# - If the factor of a split divides the extent, no guard is added.
# - `"needs"` stays as it is.
#
# Raise `ValueError`
#
# - for a fuse of two loops of which the second does not stand directly inside the first;
# - if, in the nest that comes out, a visit needs one that does not come in an earlier step. Only the
#   nest that comes out counts: what one step breaks, a later one may mend.
#
# The given nest may be one that came out of an earlier call: with guards, and with any nodes in
# `"index"`. It visits no tuple twice. Extents may be 0; a factor is 1 or more. Names of new loops are
# new, and all other names in `steps` are those of loops that are there. All loops together make less
# than 1,000 turns. You may use `visits`.
#
# <details><summary>Hint 1: say what a name has become</summary>
#
# After a split by 4, `("index", "i")` is `("+", ("*", ("index", "io"), ("number", 4)), ("index",
# "ii"))`. Write a function that replaces names in a node, and put every node of the nest through it:
# those of the guards, too. A fuse replaces two names, by `//` and `%`.
#
# </details>
# <details><summary>Hint 2: when is each visited?</summary>
#
# Number the steps of `visits` and keep, in a `dict`, the number of each tuple's step. Then look up
# what each tuple needs. What is not in the `dict` is no visit, and nobody needs to wait for it.
#
# </details>
# <details><summary>Hint 3: whose end?</summary>
#
# A guard belongs to the loop that was split, not to the axis. Split 10 by 4, and the inner 4 by 3: the
# innermost two loops go through 0 to 5, and 4 and 5 are there again in the next block. `i < 10` does
# not notice.
#
# </details>


# %% solution="reschedule"
def reschedule(nest: dict, steps: list[tuple]) -> dict:
    """Return a nest with the same visits, in the order that the steps ask for.

    raises: ValueError for a fuse of loops that are not directly within each
        other, and where a visit does not come after one that it needs
    """

    ### BEGIN SOLUTION
    def put(node: tuple, new: dict) -> tuple:
        """Return a node with some names replaced by nodes."""
        match node:
            case ("index", name):
                return new.get(name, node)
            case ("number", _):
                return node
            case (op, left, right):
                return (op, put(left, new), put(right, new))

    loops, lanes = list(nest["loops"]), nest["lanes"]
    index, guards = nest["index"], nest["guards"]
    for kind, *what in steps:
        extents = dict(loops)
        place = {name: number for number, name in enumerate(extents)}
        new = {}  # what names have become
        if kind == "split":
            name, factor, outer, inner = what
            extent, here = extents[name], place[name]
            blocks = (extent + factor - 1) // factor
            loops[here : here + 1] = [(outer, blocks), (inner, factor)]
            start = ("*", ("index", outer), ("number", factor))
            new[name] = ("+", start, ("index", inner))
            if blocks * factor != extent:
                # about the old name: like all the others, it is replaced below
                guards = (*guards, ("<", ("index", name), ("number", extent)))
        elif kind == "fuse":
            outer, inner, fused = what
            here, size = place[outer], extents[inner]
            if place[inner] != here + 1:
                raise ValueError(f"{inner} is not directly inside {outer}")
            loops[here : here + 2] = [(fused, extents[outer] * size)]
            new[outer] = ("//", ("index", fused), ("number", size))
            new[inner] = ("%", ("index", fused), ("number", size))
        elif kind == "reorder":
            places = sorted(place[name] for name in what)
            for here, name in zip(places, what, strict=True):
                loops[here] = (name, extents[name])
        else:
            (lanes,) = what
        index = {axis: put(node, new) for axis, node in index.items()}
        guards = tuple(put(guard, new) for guard in guards)

    changed = {"loops": tuple(loops), "index": index, "guards": guards}
    result = {**nest, **changed, "lanes": lanes}
    when = {at: n for n, step in enumerate(visits(result)) for at in step}
    for at in when:
        for distance in nest["needs"]:
            needed = tuple(a - d for a, d in zip(at, distance, strict=True))
            if needed in when and when[needed] >= when[at]:
                raise ValueError(f"{at} needs {needed}, which is not before it")
    return result
    ### END SOLUTION


# %% grade="reschedule"
grade("reschedule")


# %% [markdown]
# With your function a list of steps schedules the transpose, in tiles of any size. 3 and 5 do not divide
# 16: guards leave out what lies beyond the edge.


# %%
def tile(size):
    """Return the steps that make tiles of two loops, i and j."""
    return [
        ("split", "i", size, "io", "ii"),
        ("split", "j", size, "jo", "ji"),
        ("reorder", "io", "jo", "ii", "ji"),
    ]


if written("reschedule"):
    for size in (2, 3, 4, 5, 8):
        tiled = reschedule(nest_of(i=16, j=16), tile(size))
        turns = visits(tiled)
        order = [pair for together in turns for pair in together]
        print(
            f"tiles of {size}: {lines_fetched(order)} lines,",
            f"{len(turns)} turns, {len(order)} pairs",
        )

# %% [markdown]
# A guard is asked in each turn. Inductor, behind `torch.compile`, asks once for each block in its loops for
# the CPU: full blocks have one body, and the rest has another. `LoopLevel.tile`, in
# `torch/_inductor/codegen/cpp.py`, notes where the full ones end.

# %% [markdown]
# ## The order of a sum
#
# `out[i, j] += A[i, k] * B[k, j]` reads what it writes: each turn of `k` needs the one before, at
# distance $(0, 0, 1)$. Strictly, then, the loop over `k` may not run in lanes, nor backwards, nor may
# its blocks change places with what is in them. But the terms of a sum may come in any order, one says:
# it is the same number.
#
# **Predict.** The sum over `k` below is split by 2, and the inner loop goes outside: first the terms 0
# and 2, then 1 and 3. From left to right it is 1.0. What is it in the new order?

# %%
terms = [1e16, 1.0, -1e16, 1.0]
print("from left to right:", ((terms[0] + terms[1]) + terms[2]) + terms[3])
predict(..., lambda: ((terms[0] + terms[2]) + terms[1]) + terms[3])

# %% [markdown]
# The same terms and the same formula, and another number; here the new order gives the exact one.
# Integers have no such trouble while nothing overflows. For floats somebody has to say that it does not
# matter: to a C compiler with `-ffast-math`; to TVM by writing the index as a `reduce_axis`. Then the
# distance of the sum does not count, and its loop may run in lanes. Inductor takes it as said: on the CPU
# it makes `x.sum()` a loop over blocks, in which each lane has a sum of its own, and adds these at the end.

# %% [markdown] sitting="planning"
# question: What can be known of a program before it runs?
# reached: >-
#   Whether a loop nest is a contraction that a tuned kernel can take over; and shapes, work and
#   memory, from metadata alone.

# %% [markdown] exercise="lower_to_einsum"
# title: Recognise a contraction
# minutes: 40
# difficulty: 5
# points: 5
# prerequisites: [loop_nest, einsum]
# teaches: >-
#   what a compiler must prove before it hands a loop nest to a tuned kernel.
# leaves out: factors, contractions inside larger formulas, and choosing the order of pairs.
# off limits: []

# %% [markdown]
# Python loops are slow, and loops in C are not fast either beside a tuned matrix product. So a
# compiler looks for formulas that *are* one. A sum of products of plain reads is: `einsum` takes it
# as it is, and makes matrix products of it.
#
# Recognising it is easy; what is hard is not to recognise what only looks like it. Here the sum runs
# over an index that nothing depends on:
#
# $$C_i = \sum_{k=0}^{2} A_i$$
#
# **Predict.** `torch.einsum` has no way to say that `k` runs to 3. With `A = [5]`, what is $C_0$?

# %%
predict(..., lambda: sum([5] * 3))

# %% [markdown]
# **Write `lower_to_einsum(program, shapes)`.** `program` is what `compute` returns, in any form that
# the language allows; `shapes` is a `dict` from a buffer's name to its shape. Return a pair
# `(equation, names)` such that `torch.einsum(equation, *tensors)`, with the buffers of those names in
# that order, gives what the program says; or `None` if the program is not a sum of products.
#
# Lower every program whose body is, within any number of sums, a product of one or more reads, in any
# nesting, if
#
# - every index of a read is a plain index, not `i + 1` and not a number;
# - the axis of an index is exactly as long as the dimension that it reads;
# - every axis of the result and of the sums occurs in some read.
#
# Return `None` for every other program, or an equation that gives the right values. A name may have
# several letters; an equation has one letter for each index. At most 20 occur. A buffer may occur
# twice, and so may an index in one read. An inner index may have the name of an outer one, and then
# hides it.
#
# <details><summary>Hint 1: flatten the product</summary>
#
# A product of products is a tree. Walk it and collect its reads; give up at anything else.
#
# </details>
# <details><summary>Hint 2: letters</summary>
#
# Number the names and take the letter of that number. Names themselves will not do: `row` is three
# letters.
#
# </details>
# <details><summary>Hint 3: three ways to go wrong</summary>
#
# `A[i]` for `i` below 2, while `A` has five elements: `einsum` would return five. A sum over an index
# that no read has: `einsum` would leave it out. An axis that no read has: `einsum` refuses.
#
# </details>


# %% solution="lower_to_einsum"
def lower_to_einsum(
    program: dict, shapes: dict[str, tuple[int, ...]]
) -> tuple[str, list[str]] | None:
    """Return an einsum equation and the names of its operands, or None if there is none."""

    ### BEGIN SOLUTION
    def factors(node: tuple) -> list[tuple] | None:
        """Return the reads that are multiplied, or None if there is anything else."""
        if node[0] == "read":
            return [node]
        if node[0] != "*":
            return None
        left, right = factors(node[1]), factors(node[2])
        return None if left is None or right is None else left + right

    extents = dict(program["axes"])
    axes = list(extents)
    body = program["body"]
    while body[0] == "sum":
        _, name, extent, body = body
        if name in extents:
            return None  # an inner index hides an outer one of the same name
        extents[name] = extent
    reads = factors(body)
    if reads is None:
        return None

    letter = {name: chr(ord("a") + number) for number, name in enumerate(extents)}
    subscripts, used = [], set()
    for _, buffer, indices in reads:
        for index, size in zip(indices, shapes[buffer], strict=True):
            # einsum runs over whole dimensions: an axis that is shorter is another program
            if index[0] != "index" or extents[index[1]] != size:
                return None
        names = [index[1] for index in indices]
        used.update(names)
        subscripts.append("".join(letter[name] for name in names))
    if used != set(extents):
        return None  # einsum cannot know how often to repeat what does not depend on an index
    result = "".join(letter[name] for name in axes)
    return f"{','.join(subscripts)}->{result}", [read[1] for read in reads]
    ### END SOLUTION


# %% grade="lower_to_einsum"
grade("lower_to_einsum")

# %% [markdown] exercise="plan"
# title: Plan a program that does not fit
# minutes: 30
# difficulty: 4
# points: 6
# prerequisites: [best_order]
# teaches: >-
#   that shapes, work and memory of a program can be known without running it, because a tensor's
#   metadata is enough to walk through it.
# leaves out: memory that kernels use inside, and programs whose shapes depend on values.
# off limits: []

# %% [markdown]
# A product of a $10^6 \times 10^3$ matrix with a $10^3 \times 10^6$ matrix takes four terabytes for
# the result. What would it cost? You need not run it. Under `FakeTensorMode` tensors have sizes,
# strides, a dtype and a device, and no memory. Every operator works out what its result would look
# like, and stops there.

# %%
from torch._subclasses.fake_tensor import FakeTensorMode

with FakeTensorMode():
    a, b = torch.empty(10**6, 10**3), torch.empty(10**3, 10**6)
    with watch_flops() as flops, watch_memory() as memory:
        c = a @ b
print(tuple(c.shape), c.device)
print(f"{flops.total:,} FLOPs, {memory.new_bytes:,} bytes")

# %% [markdown]
# Draw: show_bars({"a": a.nbytes / 1e9, "b": b.nbytes / 1e9, "their product": c.nbytes / 1e9},
# "GB") | What the three would take. None of it is there.
#
# The `meta` device has no memory either, and would do for this product. But a program that makes
# tensors of its own, such as `torch.arange(n)`, makes them on the CPU unless somebody tells it
# otherwise, and then the two do not meet.
# A fake tensor says that it is on the CPU; within the mode everything is fake, and nothing notices.
# What it cannot do is look at a value:

# %%
try:
    torch.empty(3, device="meta") + torch.arange(3)
except RuntimeError as error:
    print(error)
with FakeTensorMode():
    print((torch.empty(3) + torch.arange(3)).device)
    try:
        torch.ones(3).nonzero()
    except Exception as error:
        print(type(error).__name__)

# %% [markdown]
# Memory has two numbers. All bytes that a program allocates matter little; how many are *alive at
# once* decides whether it fits.
#
# **Predict.** `y = x.exp().sin().cos()` with an `x` of one gigabyte. How many gigabytes of new memory
# are alive at the worst moment?


# %%
def worst_moment() -> int:
    with FakeTensorMode():
        x = torch.empty(2**28)
        with watch_memory() as memory:
            x.exp().sin().cos()
    return memory.peak_bytes // 2**30


predict(..., worst_moment)

# %% [markdown]
# While `sin` runs, its input and its output are both alive; the tensor before them is gone, as
# nothing refers to it any more.
#
# **Write `plan(program, specs)`.** `program` is a function of tensors, which may make tensors of its
# own; `specs` is a list of pairs `(shape, dtype)`, one for each argument. Nothing is as large as it
# says: no real memory of that size may be taken. Return a `dict`:
#
# | key | value |
# |---|---|
# | `"outputs"` | a list of `(shape, strides, dtype)`: tuples of numbers, and the dtype |
# | `"flops"` | FLOPs of products and convolutions, as `watch_flops` counts them |
# | `"new_bytes"` | bytes of all storages that the program allocates |
# | `"peak_bytes"` | the most of them alive at once |
# | `"kept_bytes"` | those that are still needed for the outputs; an output in an input's storage needs none |
#
# The arguments are there before the program runs and do not count. The program returns one tensor
# or a tuple of tensors. Two outputs may share a storage, which counts once. You may use
# `watch_flops` and `watch_memory`; they see fake tensors as they see others.
#
# <details><summary>Hint 1: what goes inside what</summary>
#
# Make the mode first, the arguments in it, and then begin to watch: so that the arguments do not
# count.
#
# </details>
# <details><summary>Hint 2: alive</summary>
#
# Read the numbers while the result is still there. What lives on is in `live_bytes`.
#
# </details>
# <details><summary>Hint 3: what the program drops</summary>
#
# A name that you keep, such as a list of all tensors seen, keeps the memory as well, and then the
# peak is that of another program.
#
# </details>


# %% solution="plan"
def plan(program: object, specs: list[tuple[tuple[int, ...], torch.dtype]]) -> dict:
    """Return what `program` would return, do and allocate on arguments of these shapes.

    program: tensors in, a tensor or a tuple of tensors out
    specs: (shape, dtype) of each argument
    """
    ### BEGIN SOLUTION
    with FakeTensorMode():
        arguments = [torch.empty(shape, dtype=dtype) for shape, dtype in specs]
        with watch_flops() as flops, watch_memory() as memory:
            result = program(*arguments)
        outputs = result if isinstance(result, tuple) else (result,)
        return {
            "outputs": [(tuple(t.shape), t.stride(), t.dtype) for t in outputs],
            "flops": flops.total,
            "new_bytes": memory.new_bytes,
            "peak_bytes": memory.peak_bytes,
            # what the program let go of is gone: only the outputs hold storages now
            "kept_bytes": memory.live_bytes,
        }
    ### END SOLUTION


# %% grade="plan"
grade("plan")
