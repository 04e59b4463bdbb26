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

# %% [markdown] chapter="ch02_strides"
# title: Strides, or how a tensor lies in memory
# summary: >-
#   A tensor is a row of bytes and a few numbers that say how to walk through them. Transposing,
#   slicing, broadcasting and sliding a window over an image change the numbers and leave the bytes
#   alone. In this chapter you do the walking yourself: you read elements out of raw memory, build
#   every kind of view from one primitive, and decide, exactly as PyTorch does, when a view is
#   possible and when there must be a copy.

# %% [markdown]
# ## How to work
#
# Each exercise has a card, a few cells to read and run, and one cell to write: the one that
# raises `NotImplementedError`. The cell after it grades what you wrote, as often as you like.
#
# Where a cell calls `predict(...)`, write your guess in place of the dots before you run it.
# In this chapter that is worth the trouble: most of us carry a picture of tensors that is nearly
# right, and a wrong guess shows you where it is not.

# %%
import math
import warnings

import numpy
import torch

from grader import grade, predict

# %% [markdown]
# ## A tensor is a record
#
# What Python calls a tensor is a small record, `TensorImpl` in PyTorch's C++. It holds the
# **sizes**, the **strides**, the **storage offset** and the **dtype**, and a pointer to a
# **storage**. The storage, `StorageImpl`, holds the bytes: an address, a length in bytes, and the
# allocator that will free them. It knows nothing of shapes or dtypes. Many tensors can point to
# one storage. (To read on: `c10/core/TensorImpl.h` and `c10/core/StorageImpl.h`.)


# %%
def layout(x):
    """Return what a tensor says of its storage: sizes, strides, storage offset."""
    return tuple(x.shape), x.stride(), x.storage_offset()


def same_storage(a, b):
    """Say whether two tensors have their bytes in one storage."""
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


x = torch.arange(12, dtype=torch.int32).reshape(3, 4)
print("x        ", layout(x), x.dtype, x.untyped_storage().nbytes(), "bytes")
for name, y in [("x.t()", x.t()), ("x[1:]", x[1:]), ("x[:, ::2]", x[:, ::2]), ("x[1]", x[1])]:
    print(f"{name:<9}", layout(y), "same storage:", same_storage(x, y))

# %% [markdown]
# Three rows and four columns, and what lies in memory is the row 0 to 11. To go one row down, go
# four elements on; to go one column to the right, go one on. These two numbers are the strides. The
# transposed tensor has the same bytes and the strides exchanged. All of them have *one* storage, in
# one piece, whatever their strides are. Here is what each of them sees of it:

# %%
for name, y in [("x", x), ("x.t()", x.t()), ("x[1:]", x[1:]), ("x[:, ::2]", x[:, ::2])]:
    seen = set(y.flatten().tolist())  # the numbers in x are their own places in memory
    print(f"{name:<9}", " ".join(f"{k:>2}" if k in seen else " ." for k in range(12)))

# %% [markdown]
# The record has one thing more. Its **dispatch key set** says which implementations an operation on
# this tensor must pass through: here the CPU's, after autograd's.

# %%
print(torch._C._dispatch_keys(x))

# %% [markdown]
# **Predict.** `x` holds twelve `int32`. How many bytes has the storage of `x[1, 2:]`, a tensor of
# two elements?

# %%
predict(..., lambda: x[1, 2:].untyped_storage().nbytes())

# %% [markdown] exercise="read_element"
# title: Read an element out of raw memory
# minutes: 20
# difficulty: 1
# points: 7
# prerequisites: []
# teaches: >-
#   the one formula of this chapter: where the element of an index lies, from strides, offset and
#   item size.
# leaves out: strides below zero, which PyTorch does not have.
# off limits: [torch.as_strided, torch.Tensor.as_strided, torch.Tensor.set_, torch.frombuffer, "import:numpy", "import:ctypes"]

# %% [markdown]
# The element at index $(i_0, i_1, \dots)$ begins at byte
#
# $$\text{itemsize} \cdot \big(\text{offset} + i_0 \cdot \text{stride}_0 + i_1 \cdot \text{stride}_1 + \dots\big)$$
#
# of the storage. Sizes do not occur in it. They only say which indices are allowed. Strides and
# offset count *elements*, and one multiplication at the end turns them into bytes.
#
# There is one address and one sum. Nothing is looked up on the way: a matrix is not a row of
# pointers to rows, as it may be in C.

# %%
x = torch.arange(24, dtype=torch.int16).reshape(2, 3, 4).permute(2, 0, 1)[1:]
index = (2, 1, 0)
elements = x.storage_offset() + sum(i * s for i, s in zip(index, x.stride(), strict=True))
memory = bytes(x.untyped_storage().tolist())
start = elements * x.element_size()
print(layout(x), "bytes", start, "to", start + x.element_size())
print(int.from_bytes(memory[start : start + 2], "little"), x[index].item())

# %% [markdown]
# Two addresses appear in PyTorch's own interface. `x.untyped_storage().data_ptr()` is where the
# storage begins. `x.data_ptr()` is where the tensor's first element lies, so the offset is in it.
#
# **Predict.** What is the difference of the two for the `x` above, in bytes?

# %%
predict(..., lambda: x.data_ptr() - x.untyped_storage().data_ptr())

# %% [markdown]
# **Write `read_element(memory, size, stride, offset, itemsize, index)`.** `memory` is the content of
# a storage as `bytes`. Return the `bytes` of one element, `itemsize` of them.
#
# - A negative index counts from the end of its dimension, as in Python.
# - An index beyond either end of its dimension raises `IndexError`, even where bytes would be found.
# - An element has one index per dimension. More indices than that, or fewer, raise `IndexError`.
# - A tensor without dimensions has one element; its index is `()`.
#
# <details><summary>Hint 1: one element after the other</summary>
#
# Go through `zip(size, stride, index)`. Each triple adds `index * stride` to a sum that starts at
# the offset.
#
# </details>
# <details><summary>Hint 2: from the end</summary>
#
# The allowed indices of a dimension of size `n` run from `-n` to `n - 1`. Check first, then add
# `n` to the negative ones. `index % n` would accept anything.
#
# </details>
# <details><summary>Hint 3: how many</summary>
#
# `zip` stops at the shortest. Compare the lengths before you rely on it.
#
# </details>


# %% solution="read_element"
def read_element(
    memory: bytes,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    itemsize: int,
    index: tuple[int, ...],
) -> bytes:
    """Return the bytes of the element at `index`.

    memory: a whole storage
    stride, offset: in elements
    itemsize: bytes per element
    """
    ### BEGIN SOLUTION
    if len(index) != len(size):
        raise IndexError(f"{len(index)} indices for {len(size)} dimensions")
    position = offset
    for i, n, s in zip(index, size, stride, strict=True):
        if not -n <= i < n:
            raise IndexError(f"index {i} is out of bounds for size {n}")
        position += (i + n if i < 0 else i) * s
    # elements become bytes here, once, offset and all
    return memory[position * itemsize : (position + 1) * itemsize]
    ### END SOLUTION


# %% grade="read_element"
grade("read_element")

# %% [markdown]
# ## Indexing: what counts as an index
#
# A tensor takes fewer indices than it has dimensions, and then gives a smaller tensor, a view. More
# indices than dimensions are an error. But not everything between the brackets is counted: `None`
# adds a dimension and uses up none, `...` stands for as many as are missing, and a mask of three
# dimensions takes the place of three indices.

# %%
x = torch.zeros(2, 3, 4)
mask = x == 0


def attempt(what):
    """Return what a call gives, or what it raises, in one line."""
    try:
        return str(what())
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


print("x[1]                  ", attempt(lambda: tuple(x[1].shape)))
print("x[1, 2, 3]            ", attempt(lambda: tuple(x[1, 2, 3].shape)))
print("x[None, :, :, :, None]", attempt(lambda: tuple(x[None, :, :, :, None].shape)))
print("x[..., None, 0, None] ", attempt(lambda: tuple(x[..., None, 0, None].shape)))
print("x[mask]               ", attempt(lambda: tuple(x[mask].shape)))
print("x[1, 2, 3, 0]         ", attempt(lambda: x[1, 2, 3, 0]))
print("x[0, 3, 0]            ", attempt(lambda: x[0, 3, 0]))
print("x[0, 0].item()        ", attempt(lambda: x[0, 0].item()))

# %% [markdown]
# `item()` makes a Python number of a tensor with exactly one element, however many dimensions it
# has: `torch.zeros(1, 1, 1).item()` is fine. `x[1, 2, 3]` alone is still a tensor, one with zero
# dimensions.
#
# Indices that are numbers, slices, `None` and `...` give **views**. Masks and lists of numbers
# **copy**: in general no strides lead through what they pick, and PyTorch does not look for
# exceptions.

# %%
x = torch.arange(6)
for name, y in [("x[2:5]", x[2:5]), ("x[[2, 3, 4]]", x[[2, 3, 4]]), ("x[x > 1]", x[x > 1])]:
    print(f"{name:<13} same storage: {same_storage(x, y)}")

# %% [markdown]
# **Predict.** `x[[2, 3, 4]]` is a copy. Then what does `x[[2, 3, 4]] = 0` do to `x`? Write the list
# of its six elements. (Assignment does not go through the copy. It is an operation of its own,
# `index_put_`.)


# %%
def assign():
    """Return x after the assignment."""
    x = torch.arange(6)
    x[[2, 3, 4]] = 0
    return x.tolist()


predict(..., assign)

# %% [markdown]
# ## Creation: copy or share
#
# Where do a tensor's bytes come from? `torch.tensor` always copies. `torch.as_tensor` shares
# *if it can*: it needs an array or a tensor that already has the right dtype and lies on the right
# device. A list has no bytes to share, and another dtype needs other bytes. `torch.from_numpy`
# shares, or refuses.

# %%
array = numpy.arange(3, dtype=numpy.float32)
numbers = [0.0, 1.0, 2.0]
made = {
    "tensor(array)": torch.tensor(array),
    "as_tensor(array)": torch.as_tensor(array),
    "as_tensor(array, float64)": torch.as_tensor(array, dtype=torch.float64),
    "from_numpy(array)": torch.from_numpy(array),
    "as_tensor(list)": torch.as_tensor(numbers),
}
array[0] = numbers[0] = 7.0
for name, y in made.items():
    print(f"{name:<26} {'shares' if y[0] == 7 else 'copied'}")

# %% [markdown]
# NumPy's strides count bytes and may be negative. PyTorch's may not, and so a reversed array cannot
# be shared.

# %%
print(array.strides, torch.from_numpy(array).stride())
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    print(attempt(lambda: torch.from_numpy(array[::-1]))[:60])
print(attempt(lambda: torch.arange(3)[::-1]))

# %% [markdown]
# `torch.Tensor`, with a capital T, is another thing: the class. Called with whole numbers it takes
# them for *sizes*, and leaves the elements uninitialised.
#
# **Predict.** What is `(torch.Tensor(3).shape, torch.tensor(3).shape)`? Write it as a tuple of two
# tuples.

# %%
predict(..., lambda: (tuple(torch.Tensor(3).shape), tuple(torch.tensor(3).shape)))

# %% [markdown] exercise="dense_stride"
# title: Lay out a new tensor
# minutes: 15
# difficulty: 1
# points: 5
# prerequisites: [read_element]
# teaches: >-
#   where strides come from: sizes, and the order in which the dimensions lie in memory.
# leaves out: converting a tensor that exists already from one order to another.
# off limits: [torch.empty_permuted, torch.Tensor.stride, torch._prims_common.make_contiguous_strides_for]

# %% [markdown]
# A new tensor is **dense**: its elements fill the storage without gaps, each place used once. Which
# dimension comes first in memory is a choice. `torch.empty_permuted` lets you choose: it takes the
# sizes, and the dimensions in the order in which they lie in memory, outermost first.

# %%
for order in [(0, 1, 2, 3), (0, 2, 3, 1), (3, 2, 1, 0)]:
    print(order, torch.empty_permuted((2, 3, 4, 5), order).stride())

# %% [markdown]
# In the first order the last dimension varies fastest: neighbours in a row are neighbours in
# memory. That is what PyTorch calls **contiguous**, or row-major. In the second, dimension 1 varies
# fastest: for images that is `channels_last`. The third is Fortran's. All three fill 120 places
# without gaps. `contiguous` is the name of one order among many, and not another word for dense.
#
# Nor is `torch.strided` a name for gaps. It is what `x.layout` says of every tensor that is described
# by strides, as opposed to the sparse ones. Fresh tensors are strided *and* contiguous.

# %%
x = torch.zeros(2, 3, 4)
print(x.layout, x.stride(), x.is_contiguous())

# %% [markdown]
# The innermost dimension has stride 1. Each further one steps over all that lies within it.
#
# **Predict.** Which strides does `torch.empty(2, 0, 3)` get? It has no elements at all.

# %%
predict(..., lambda: torch.empty(2, 0, 3).stride())

# %% [markdown]
# **Write `dense_stride(size, order)`.** `size` has one size per dimension, `order` the numbers of
# all dimensions, outermost first. Return the strides as a tuple, one per dimension, in the order of
# `size`, as `torch.empty_permuted(size, order)` has them. A dimension of size 0 counts as if its
# size were 1.
#
# <details><summary>Hint 1: from the inside</summary>
#
# Start with a step of 1 at the last entry of `order`. After each dimension multiply the step by its
# size.
#
# </details>
# <details><summary>Hint 2: which goes where</summary>
#
# `order` says which dimension is outermost, then which is next. The strides come in the order of
# the dimensions: write to `stride[dim]`, for `dim` in `reversed(order)`.
#
# </details>
# <details><summary>Hint 3: nothing to step over</summary>
#
# `max(n, 1)` keeps the step from becoming zero. Without dimensions there are no strides: `()`.
#
# </details>


# %% solution="dense_stride"
def dense_stride(size: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a tensor without gaps.

    order: every dimension once, the one that varies slowest first
    """
    ### BEGIN SOLUTION
    stride = [0] * len(size)
    step = 1
    for dim in reversed(order):
        stride[dim] = step
        step *= max(size[dim], 1)  # an empty dimension must not bring all others to stride 0
    return tuple(stride)
    ### END SOLUTION


# %% grade="dense_stride"
grade("dense_stride")

# %% [markdown] exercise="is_contiguous"
# title: Say when a tensor is contiguous
# minutes: 25
# difficulty: 2
# points: 6
# prerequisites: [dense_stride]
# teaches: >-
#   that contiguity is a relation between sizes and strides, with exceptions that decide real cases:
#   sizes of one, and no elements at all.
# leaves out: channels_last_3d, and what other formats there are for sparse tensors.
# off limits: [torch.Tensor.is_contiguous, torch.Tensor.contiguous, torch._prims_common.is_contiguous, torch._prims_common.is_channels_last_contiguous]

# %% [markdown]
# Two methods with similar names. `is_contiguous()` looks at sizes and strides and answers.
# `contiguous()` returns a tensor: the very same one if it is contiguous already, else a copy.

# %%
x = torch.zeros(2, 3)
print(x.contiguous() is x, same_storage(x.t().contiguous(), x))

# %% [markdown]
# Transposing makes a tensor non-contiguous, they say. Often it does. Look at what happens to these:

# %%
image = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
for name, y in [
    ("zeros(3, 4).t()", torch.zeros(3, 4).t()),
    ("zeros(1, 5).t()", torch.zeros(1, 5).t()),
    ("zeros(2, 1, 5).transpose(0, 1)", torch.zeros(2, 1, 5).transpose(0, 1)),
    ("zeros(0, 3).t()", torch.zeros(0, 3).t()),
    ("image", image),
    ("image.permute(0, 2, 3, 1)", image.permute(0, 2, 3, 1)),
]:
    print(f"{name:<31} {tuple(y.shape)!s:<13} {y.stride()!s:<14} {y.is_contiguous()}")

# %% [markdown]
# A stride tells how far it is to the *next* index along a dimension. Where the size is 1 there is no
# next one, so its stride says nothing, and PyTorch does not look at it. Where there are no elements,
# no stride says anything. And the last line: a permutation can make a tensor contiguous that was
# not.
#
# The precise rule. Go through the dimensions from the one that should be innermost to the one that
# should be outermost, with an expected stride that starts at 1. Skip dimensions of size 1. Each
# other one must have the expected stride; then multiply the expected stride by its size.
#
# - For plain contiguity the order is the last dimension first. A tensor without elements is
#   contiguous, whatever its strides are.
# - For `channels_last` the tensor must have four dimensions, else the answer is `False`. The order
#   is 1, 3, 2, 0. Here tensors without elements get no exception: the rule is applied as it stands,
#   and after a dimension of size 0 the expected stride is 0.
#
# **Predict.** Can a tensor be contiguous in both senses at once? Write the answer for
# `torch.zeros(2, 3, 1, 1)` as a tuple: plain, `channels_last`.


# %%
def both(x):
    """Ask both questions."""
    return x.is_contiguous(), x.is_contiguous(memory_format=torch.channels_last)


predict(..., lambda: both(torch.zeros(2, 3, 1, 1)))

# %% [markdown]
# **Write `is_contiguous(size, stride, channels_last=False)`.** Return a `bool`: what
# `x.is_contiguous()` says of a tensor with these sizes and strides, or, if `channels_last` is true,
# what `x.is_contiguous(memory_format=torch.channels_last)` says. Strides may be any whole numbers
# from 0 on.
#
# <details><summary>Hint 1: one loop</summary>
#
# Both questions are the same loop over another order of the dimensions.
#
# </details>
# <details><summary>Hint 2: do not compare with dense strides</summary>
#
# `stride == dense_stride(size, order)` is close, and wrong wherever a size is 1.
#
# </details>
# <details><summary>Hint 3: the exceptions</summary>
#
# Four dimensions are asked for in one of the questions, `0 in size` matters in the other one.
# A tensor with no dimensions is contiguous.
#
# </details>


# %% solution="is_contiguous"
def is_contiguous(
    size: tuple[int, ...], stride: tuple[int, ...], channels_last: bool = False
) -> bool:
    """Say whether a tensor with these sizes and strides is contiguous.

    channels_last: ask for the strides of channels_last, which only four dimensions can have
    """
    ### BEGIN SOLUTION
    if channels_last:
        if len(size) != 4:
            return False
        innermost_first = [1, 3, 2, 0]
    else:
        if 0 in size:
            return True
        innermost_first = list(reversed(range(len(size))))

    expected = 1
    for dim in innermost_first:
        if size[dim] == 1:
            continue  # there is no second index, so nobody ever takes this step
        if stride[dim] != expected:
            return False
        expected *= size[dim]
    return True
    ### END SOLUTION


# %% grade="is_contiguous"
grade("is_contiguous")
# %% [markdown] exercise="view_of"
# title: Make seven views by hand
# minutes: 40
# difficulty: 3
# points: 7
# prerequisites: [read_element]
# teaches: >-
#   that transposing, slicing, expanding, taking a diagonal and sliding a window all do the same
#   thing: write other sizes, strides and offset over the same bytes.
# leaves out: writing through a view whose elements overlap.
# off limits: ["aten:transpose", "aten:permute", "aten:t", "aten:numpy_T", "aten:select", "aten:slice", "aten:narrow", "aten:expand", "aten:diagonal", "aten:unfold", "aten:view", "aten:squeeze", "aten:unsqueeze", "aten:unbind", "aten:split", "aten:alias", "import:numpy"]

# %% [markdown]
# `torch.as_strided(x, size, stride, storage_offset)` is the one view of which all others are special
# cases. It takes the storage of `x` and lays the record that you give it over the bytes. It
# copies nothing, and it does not ask what the sizes and strides of `x` were.
#
# The offset counts from the beginning of the **storage**, not from the beginning of `x`:

# %%
x = torch.arange(12).reshape(3, 4)[1:]
print(x.tolist(), layout(x))
print(torch.as_strided(x, (2,), (1,), 0).tolist(), "offset 0")
print(torch.as_strided(x, (2,), (1,), x.storage_offset()).tolist(), "offset of x")

# %% [markdown]
# The diagonal of a matrix: from each element to the next it is one row down and one column to the
# right. So the stride is the sum of the two.

# %%
x = torch.arange(12).reshape(3, 4)
print(x.diagonal().tolist(), layout(x.diagonal()))
print(x.unfold(1, 3, 1).tolist()[0], layout(x.unfold(1, 3, 1)))

# %% [markdown]
# The second line slides a window of three over each row. A row of four elements has become two
# windows of three, and nothing was copied: two neighbouring windows *share* elements. In the
# strides you see that as a number that occurs twice.
#
# An expanded dimension has stride 0: from one index to the next, stay where you are.
#
# **Predict.** `x` has strides `(4, 1)`. Which strides has `x.unfold(0, 2, 1)`, windows of two rows?

# %%
predict(..., lambda: x.unfold(0, 2, 1).stride())

# %% [markdown]
# **Write `view_of(x, op, *args)`.** `x` is a tensor of any layout: it may have an offset, gaps, and
# strides that fit no order. `op` is one of seven names; the arguments are those of the method of
# that name:
#
# | `op` | `args` |
# |---|---|
# | `"transpose"` | `dim0, dim1` |
# | `"permute"` | `*dims` |
# | `"select"` | `dim, index` |
# | `"narrow"` | `dim, start, length` |
# | `"expand"` | `*size`: may be longer than `x.shape`, then the new dimensions come first; -1 keeps a size |
# | `"diagonal"` | `offset, dim1, dim2`; the diagonal comes last |
# | `"unfold"` | `dim, size, step`; the windows come last |
#
# Return the view: no byte is copied, and sizes, strides and storage offset are those that PyTorch's
# own method gives. (Where a size is 1 its stride is yours to choose, and so are all strides of an
# empty result.) Dimensions may be negative, and so may `index` and the diagonal's `offset`. All
# arguments are valid ones; you need not check them. Do not change `x`.
#
# PyTorch's own views are off limits, indexing with brackets included. `torch.as_strided` is not.
#
# <details><summary>Hint 1: three things to edit</summary>
#
# Begin with `size = list(x.shape)`, `stride = list(x.stride())` and `offset = x.storage_offset()`.
# Let each operation edit these, and call `as_strided` once, at the end.
#
# </details>
# <details><summary>Hint 2: what moves the offset</summary>
#
# `select`, `narrow` and `diagonal` begin somewhere else: so many steps along a dimension, each as
# long as its stride. A diagonal with a positive offset begins further right, one with a negative
# offset further down. It is as long as what is left of the shorter side, and never shorter than 0.
#
# </details>
# <details><summary>Hint 3: negative dimensions</summary>
#
# `size[-1]` works by itself, until you append or delete something. Turn dimensions into
# `dim % x.dim()` first.
#
# </details>


# %% solution="view_of"
def view_of(x: torch.Tensor, op: str, *args: int) -> torch.Tensor:
    """Return the view of `x` that the method `op` would give.

    args: whole numbers, as the method takes them
    """
    ### BEGIN SOLUTION
    size, stride, offset = list(x.shape), list(x.stride()), x.storage_offset()
    if op == "transpose":
        a, b = args
        size[a], size[b] = size[b], size[a]
        stride[a], stride[b] = stride[b], stride[a]
    elif op == "permute":
        size, stride = [size[dim] for dim in args], [stride[dim] for dim in args]
    elif op == "select":
        dim, index = args
        offset += index % size[dim] * stride[dim]
        del size[dim], stride[dim]
    elif op == "narrow":
        dim, start, length = args
        offset += start * stride[dim]
        size[dim] = length
    elif op == "expand":
        new = len(args) - x.dim()
        size, stride = [1] * new + size, [0] * new + stride
        for dim, n in enumerate(args):
            if n not in (-1, size[dim]):
                size[dim], stride[dim] = n, 0  # every index finds the same element
    elif op == "diagonal":
        shift, down, right = args[0], args[1] % x.dim(), args[2] % x.dim()
        # above the main diagonal begin further right, below it further down
        offset += shift * stride[right] if shift > 0 else -shift * stride[down]
        length = min(size[down] + min(shift, 0), size[right] - max(shift, 0))
        step = stride[down] + stride[right]
        rest = [dim for dim in range(x.dim()) if dim not in (down, right)]
        size = [size[dim] for dim in rest] + [max(length, 0)]
        stride = [stride[dim] for dim in rest] + [step]
    elif op == "unfold":
        dim, window, step = args[0] % x.dim(), args[1], args[2]
        # within a window the steps are the old ones; from window to window they are longer
        size, stride = [*size, window], [*stride, stride[dim]]
        size[dim] = (size[dim] - window) // step + 1
        stride[dim] *= step
    return torch.as_strided(x, size, stride, offset)
    ### END SOLUTION


# %% grade="view_of"
grade("view_of")

# %% [markdown] exercise="index_view"
# title: Index without brackets
# minutes: 40
# difficulty: 4
# points: 6
# prerequisites: [view_of]
# teaches: >-
#   what basic indexing is: numbers, slices, `None` and `...` become sizes, strides and one offset,
#   and which of them use up a dimension.
# leaves out: indices that copy (masks, lists and tensors of indices), and assignment.
# off limits: ["aten:select", "aten:slice", "aten:narrow", "aten:unsqueeze", "aten:view", "aten:transpose", "aten:permute", "aten:expand", "aten:diagonal", "aten:unbind", "aten:split", "import:numpy"]

# %% [markdown]
# Four things may stand between the brackets without causing a copy. Each edits the record in its
# own way:
#
# | item | uses up | result |
# |---|---|---|
# | a number | one dimension | no dimension; moves the offset |
# | a slice `start:stop:step` | one dimension | one dimension; moves the offset, multiplies the stride |
# | `None` | none | a dimension of size 1 |
# | `...` | as many as the others leave | these dimensions, as they are |
#
# Dimensions that are left over at the end stay as they are: there is an invisible `...` after the
# last item. Slices follow Python's rules: ends that are missing, negative, or far outside are all
# fine.

# %%
x = torch.arange(24).reshape(2, 3, 4)
print("x[1, 2, 3]         ", layout(x[1, 2, 3]))
print("x[..., 3]          ", layout(x[..., 3]))
print("x[:, None, 1:]     ", layout(x[:, None, 1:]))
print("x[0, ..., ::3]     ", layout(x[0, ..., ::3]))
print("x[:, -2:99:2, None]", layout(x[:, -2:99:2, None]))
print("x[:, 5:2]          ", layout(x[:, 5:2]))

# %% [markdown]
# **Predict.** `x` has sizes `(2, 3, 4)` and strides `(12, 4, 1)`. What is the storage offset of
# `x[-1, 1::2, -3]`?

# %%
predict(..., lambda: x[-1, 1::2, -3].storage_offset())

# %% [markdown]
# **Write `index_view(x, items)`.** `items` is a tuple of numbers, slices with a positive step,
# `None`, and at most one `...`. Return what `x[items]` gives: a view with that shape, those
# strides and that offset. (A stride is free where the size is 1, and so are all strides of an empty
# result.)
#
# - A number outside of its dimension raises `IndexError`. A slice never does.
# - More numbers and slices than dimensions raise `IndexError`.
#
# `x` may have any layout. Do not change it. Brackets on tensors, and PyTorch's own views, are off
# limits; `torch.as_strided` is not.
#
# <details><summary>Hint 1: Python knows the rules of slices</summary>
#
# `item.indices(n)` returns start, stop and step with all defaults and ends worked out for a
# dimension of size `n`; `len(range(...))` of the three is the new size.
#
# </details>
# <details><summary>Hint 2: get rid of the dots</summary>
#
# Count the items that use up a dimension. Replace `...` by as many `slice(None)` as are missing,
# and append one if there is none. What remains is a single loop.
#
# </details>
# <details><summary>Hint 3: two counters</summary>
#
# `None` adds to the result and takes nothing from `x`. Walk through the dimensions of `x` with a
# counter or an iterator of their own.
#
# </details>


# %% solution="index_view"
def index_view(x: torch.Tensor, items: tuple) -> torch.Tensor:
    """Return the view `x[items]`.

    items: numbers, slices, None, and at most one Ellipsis
    """
    ### BEGIN SOLUTION
    used = sum(item is not None and item is not ... for item in items)
    if used > x.dim():
        raise IndexError(f"{used} indices for {x.dim()} dimensions")
    if ... not in items:
        items = (*items, ...)
    dots = items.index(...)
    items = (*items[:dots], *[slice(None)] * (x.dim() - used), *items[dots + 1 :])

    size, stride, offset = [], [], x.storage_offset()
    dimensions = iter(zip(x.shape, x.stride(), strict=True))
    for item in items:
        if item is None:
            size.append(1)
            stride.append(0)  # a step that nobody takes
            continue
        n, s = next(dimensions)
        if isinstance(item, slice):
            start, stop, step = item.indices(n)
            size.append(len(range(start, stop, step)))
            stride.append(s * step)
            offset += start * s
        elif -n <= item < n:
            offset += item % n * s
        else:
            raise IndexError(f"index {item} is out of bounds for size {n}")
    return torch.as_strided(x, size, stride, offset)
    ### END SOLUTION


# %% grade="index_view"
grade("index_view")

# %% [markdown] exercise="share_memory"
# title: Find out whether two tensors share a byte
# minutes: 25
# difficulty: 3
# points: 6
# prerequisites: [read_element]
# teaches: >-
#   that `data_ptr`, `_base` and the storage each answer another question than "does writing to this
#   one change that one".
# leaves out: deciding it fast for large tensors, which is a hard problem of integer programming.
# off limits: [torch._C._overlaps, "import:numpy"]

# %% [markdown]
# To find out whether two tensors alias, people compare `data_ptr()`. That compares where their
# *first elements* lie. A slice begins elsewhere, and still is part of the same memory:

# %%
x = torch.arange(6, dtype=torch.int32)
tail, even, odd = x[2:], x[::2], x[1::2]
for name, a, b in [("x, tail", x, tail), ("x, even", x, even), ("even, odd", even, odd)]:
    print(f"{name:<10}", "data_ptr:", a.data_ptr() == b.data_ptr(), " storage:", same_storage(a, b))

# %% [markdown]
# Comparing storages says whether two tensors *could* share. (Older texts use `x.storage()`, which
# is deprecated: it knows a dtype, while a storage is bytes. `untyped_storage()` is the real thing.)
# But `even` and `odd` live in one storage and have no byte in common.
#
# **Predict.** After `odd.zero_()`, what is the sum of `even`?


# %%
def zero_odd():
    """Write to one of two interleaved views, and look at the other."""
    x = torch.arange(6, dtype=torch.int32)
    even, odd = x[::2], x[1::2]
    odd.zero_()
    return even.sum().item()


predict(..., zero_odd)

# %% [markdown]
# **Write `share_memory(a, b)`.** Return `True` if at least one byte of memory belongs to an element
# of `a` and to an element of `b`, else `False`. The two may have different shapes and dtypes, any
# layout, and storages of their own or a common one. A tensor without elements shares nothing. Our
# tensors have at most a few hundred elements: listing all places is fine. Do not change `a` or `b`.
#
# <details><summary>Hint 1: addresses</summary>
#
# An address in memory is a whole number, and `x.data_ptr()` is that of the first element. The
# others follow from strides and item size.
#
# </details>
# <details><summary>Hint 2: bytes, not elements</summary>
#
# An element of eight bytes covers eight addresses. An `int16` tensor that looks at the second half
# of an `int32` shares bytes with it, although no element begins at the same place.
#
# </details>
# <details><summary>Hint 3: sets</summary>
#
# Put all addresses of `a` in a set, and ask whether it is disjoint from that of `b`. The set of a
# tensor with no dimensions has one element's bytes.
#
# </details>


# %% solution="share_memory"
def share_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Say whether some byte of memory belongs to both tensors."""

    ### BEGIN SOLUTION
    def addresses(x: torch.Tensor) -> set[int]:
        # the first byte of every element: one dimension after the other multiplies the set
        starts = {x.data_ptr()}
        for n, s in zip(x.shape, x.stride(), strict=True):
            starts = {start + i * s * x.element_size() for start in starts for i in range(n)}
        return {start + byte for start in starts for byte in range(x.element_size())}

    return not addresses(a).isdisjoint(addresses(b))
    ### END SOLUTION


# %% grade="share_memory"
grade("share_memory")
# %% [markdown] exercise="broadcast_strides"
# title: Broadcast by hand
# minutes: 25
# difficulty: 3
# points: 7
# prerequisites: [view_of]
# teaches: >-
#   that broadcasting is a view: sizes are matched from the right, and whatever is repeated has
#   stride 0.
# leaves out: the strides of an operation's *result*, which PyTorch chooses from those of its inputs.
# off limits: [torch.broadcast_tensors, torch.broadcast_shapes, torch.broadcast_to, "aten:expand", torch._refs.broadcast_tensors, "import:numpy"]

# %% [markdown]
# `a + b` works for a column and a row, and gives a matrix. Nothing is copied to make them fit. Both
# are read through views of the common size, and where a tensor repeats itself its stride is 0.

# %%
column, row = torch.arange(3).reshape(3, 1), torch.arange(4)
wide_column, wide_row = torch.broadcast_tensors(column, row)
print("column", layout(column), "->", layout(wide_column))
print("row   ", layout(row), "->", layout(wide_row))
print((column + row).tolist())

# %% [markdown]
# The rule:
#
# - Line the sizes up **from the right**. A tensor with fewer dimensions gets sizes of 1 in front.
# - In each dimension the sizes other than 1 must all be equal. That is the common size; if all
#   are 1, it is 1.
# - Where a tensor has 1 and the common size is something else, its stride becomes 0.
#
# `expand` makes such a view of a single tensor. It stretches dimensions of size 1, and it can put new
# ones in front of them, of any size. `repeat` gives the same values, in memory of their own.

# %%
x = torch.arange(3)
for name, y in [("expand(1000, 3)", x.expand(1000, 3)), ("repeat(1000, 1)", x.repeat(1000, 1))]:
    print(f"x.{name} {y.stride()} {y.untyped_storage().nbytes():>6} bytes")

# %% [markdown]
# **Predict.** What is the common size of `(2, 1, 3)`, `(4, 1)` and `()`? Write a tuple.

# %%
predict(..., lambda: tuple(torch.broadcast_shapes((2, 1, 3), (4, 1), ())))

# %% [markdown]
# A classic accident: predictions of size `(n, 1)`, targets of size `(n,)`. Nothing raises, and the
# mean is one of $n^2$ differences.

# %%
predictions, targets = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([1.0, 2.0, 3.0])
errors = predictions - targets
print(tuple(errors.shape), round(errors.square().mean().item(), 3), "where 0.0 was meant")

# %% [markdown]
# **Predict.** What is the size of `torch.zeros(0) + torch.zeros(1)`? Write a tuple.

# %%
predict(..., lambda: tuple((torch.zeros(0) + torch.zeros(1)).shape))

# %% [markdown]
# **Write `broadcast_strides(layouts)`.** `layouts` is a list of at least one pair `(size, stride)`,
# both tuples. Return a pair: the common size as a tuple, and a list with the strides that each
# tensor has when it is read with the common size, each a tuple as long as the common size.
#
# Strides that exist are kept, whatever they are. (Where the common size is 0 or 1 the stride is yours
# to choose.) Sizes that do not fit raise `RuntimeError`, as `torch.broadcast_tensors` does.
#
# <details><summary>Hint 1: fill up in front</summary>
#
# Find the largest number of dimensions. Put as many sizes of 1, and strides of 0, in front of each
# layout as it is short of.
#
# </details>
# <details><summary>Hint 2: one dimension at a time</summary>
#
# `zip(*sizes)` goes through the dimensions. Look at the set of sizes that are not 1: it may have
# no member, or one.
#
# </details>
# <details><summary>Hint 3: not the maximum</summary>
#
# The common size is not the largest one. 0 and 1 give 0, and 0 and 3 do not fit.
#
# </details>


# %% solution="broadcast_strides"
Layout = tuple[tuple[int, ...], tuple[int, ...]]


def broadcast_strides(layouts: list[Layout]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Return the common size, and each tensor's strides under it.

    layouts: (size, stride) of each tensor
    """
    ### BEGIN SOLUTION
    dims = max(len(size) for size, _ in layouts)
    sizes = [(1,) * (dims - len(size)) + size for size, _ in layouts]
    strides = [(0,) * (dims - len(stride)) + stride for _, stride in layouts]

    common = []
    for here in zip(*sizes, strict=True):
        others = set(here) - {1}
        if len(others) > 1:
            raise RuntimeError(f"sizes {here} do not fit together")
        common.append(others.pop() if others else 1)

    read = [
        # a size of 1 that is read as another one: stay where you are
        tuple(s if n == m else 0 for n, s, m in zip(size, stride, common, strict=True))
        for size, stride in zip(sizes, strides, strict=True)
    ]
    return tuple(common), read
    ### END SOLUTION


# %% grade="broadcast_strides"
grade("broadcast_strides")

# %% [markdown] exercise="view_stride"
# title: Decide whether a view is possible
# minutes: 60
# difficulty: 5
# points: 9
# prerequisites: [is_contiguous, view_of]
# teaches: >-
#   the exact rule behind `view`: which dimensions can be merged, which cannot, and why a tensor need
#   not be contiguous.
# leaves out: "`x.view(dtype)`, which reads the same bytes as another dtype."
# off limits: ["aten:view", "aten:_unsafe_view", torch.Tensor.reshape, torch.reshape, torch.Tensor.view_as, torch.flatten, torch.Tensor.flatten, torch.Tensor.unflatten, torch.unflatten, torch._subclasses.fake_impls._compute_stride, "import:numpy"]

# %% [markdown]
# "`view` only works on contiguous tensors." You will have read it, and the error message seems to say
# so. Try it:

# %%
x = torch.arange(24).reshape(4, 6).t()
print("x        ", layout(x), "contiguous:", x.is_contiguous())
print("view     ", layout(x.view(2, 3, 2, 2)), "same storage:", same_storage(x, x.view(2, 3, 2, 2)))
y = torch.arange(20)[::2]
print("y        ", layout(y), "contiguous:", y.is_contiguous())
print("view     ", layout(y.view(2, 5)))
print("x.view(8, 3):", attempt(lambda: x.view(8, 3)))

# %% [markdown]
# So what does `view` need? It keeps the *row-major order of elements*: walk through `x` with the last
# index fastest, and the same elements come up, in the same order, when you walk through the result.
# The result must find them with strides of its own. That is possible or it is not.
#
# **Splitting** a dimension is always possible. Six elements at steps of 4 are two rows of three, with
# steps of 12 and 4.
#
# **Merging** two neighbours is possible if the outer one goes on exactly where the inner one ends:
# the outer stride is the inner stride times the inner size. Sizes `(2, 3)` with strides `(6, 2)`
# merge into 6 elements at steps of 2. With strides `(7, 2)` there is a jump in the middle, and no
# single step covers it.
#
# Therefore: first merge whatever merges. What remains are **runs**, each a number of elements at one
# step, with jumps between them. Then cut the runs into the sizes asked for. A new dimension may lie
# anywhere within a run. It must not reach across a jump.
#
# **Predict.** `z` has sizes `(4, 3)` and strides `(6, 1)`: half of the columns of a matrix. Which of
# `z.view(2, 2, 3)`, `z.view(12)` and `z.view(2, 6)` are possible? Write a tuple of three truth
# values.


# %%
def can_view(x, *size):
    """Say whether PyTorch makes this view."""
    try:
        x.view(*size)
    except RuntimeError:
        return False
    return True


z = torch.arange(24).reshape(4, 6)[:, :3]
predict(..., lambda: (can_view(z, 2, 2, 3), can_view(z, 12), can_view(z, 2, 6)))

# %% [markdown]
# An expanded dimension has stride 0, and the rule covers it as it stands: $0 = n \cdot 0$, so
# neighbours with stride 0 merge.

# %%
one = torch.zeros(1)
print(can_view(one.expand(2, 3), 6), can_view(torch.zeros(3).expand(2, 3), 6))

# %% [markdown]
# **Write `view_stride(size, stride, new_size)`.** Return the strides of `x.view(new_size)` for an
# `x` with these sizes and strides, as a tuple, or `None` where PyTorch refuses the view because the
# elements cannot be reached. Your answer must agree with PyTorch's for *every* layout: any strides
# from 0 on, sizes of 1 with strides that mean nothing, no elements, no dimensions.
#
# - One size in `new_size` may be -1: it is worked out from the others.
# - A `new_size` that does not have as many elements as `size` raises `RuntimeError`. So do two sizes
#   of -1, sizes below -1, and a -1 beside a 0, which could be anything.
# - Where a new size is 1 its stride is yours to choose. If there are no elements, all of them are,
#   and no view is refused.
#
# <details><summary>Hint 1: throw out what means nothing</summary>
#
# Dimensions of size 1 contribute nothing to the order of elements. Leave them out before you look
# for jumps, whatever their strides say.
#
# </details>
# <details><summary>Hint 2: runs</summary>
#
# Go from the last dimension to the first. Keep a list of pairs `(elements, step)`. A dimension joins
# the last pair if its stride is `elements * step`; else it begins a pair of its own.
#
# </details>
# <details><summary>Hint 3: cutting</summary>
#
# Go through the new sizes from the last to the first. Each takes its part of the current run: it
# must divide what is left of it. Then multiply the step by it, and go to the next run when nothing
# is left.
#
# </details>


# %% solution="view_stride"
def view_stride(
    size: tuple[int, ...], stride: tuple[int, ...], new_size: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the strides of a view, or None if there is none.

    new_size: as many elements as `size` has; one entry may be -1
    """
    ### BEGIN SOLUTION
    new_size = list(new_size)
    if new_size.count(-1) == 1:
        known = math.prod(n for n in new_size if n != -1)
        if known:  # else it could be anything, and the -1 stays for the next line to find
            new_size[new_size.index(-1)] = math.prod(size) // known
    if min(new_size, default=0) < 0 or math.prod(new_size) != math.prod(size):
        raise RuntimeError(f"{new_size} does not fit {math.prod(size)} elements")
    if 0 in size:
        return (1,) * len(new_size)

    runs = []  # the innermost first: how many elements, and the step from one to the next
    for n, s in zip(reversed(size), reversed(stride), strict=True):
        if n == 1:
            continue
        if runs and s == runs[-1][0] * runs[-1][1]:
            runs[-1] = runs[-1][0] * n, runs[-1][1]
        else:
            runs.append((n, s))

    new_stride = []
    left, step = 1, 1
    for n in reversed(new_size):
        if n > 1 and left == 1:
            left, step = runs.pop(0)
        if left % n:
            return None  # this dimension would reach across a jump
        new_stride.append(step)
        left, step = left // n, step * n
    return tuple(reversed(new_stride))
    ### END SOLUTION


# %% grade="view_stride"
grade("view_stride")

# %% [markdown]
# PyTorch's own version is `at::detail::computeStride`, in `aten/src/ATen/TensorUtils.cpp`. It does
# both steps in one loop. Read it next: you will recognise what it does.

# %% [markdown] exercise="reshape"
# title: Reshape by a view, or by one copy
# minutes: 30
# difficulty: 4
# points: 7
# prerequisites: [view_stride]
# teaches: >-
#   when `reshape` aliases its input and when it silently stops to, and what the copy costs.
# leaves out: reshaping tensors that are sparse, nested or quantized.
# off limits: ["aten:view", "aten:_unsafe_view", "aten:reshape", torch.Tensor.reshape, torch.reshape, torch.Tensor.view_as, torch.Tensor.reshape_as, torch.flatten, torch.Tensor.flatten, torch.Tensor.unflatten, torch.unflatten, torch.ravel, torch.Tensor.ravel, "import:numpy"]

# %% [markdown]
# `reshape` makes a view if there is one, and a copy if there is none. It does not say which.

# %%
x = torch.arange(12).reshape(3, 4)
for name, y in [
    ("x.reshape(12)", x.reshape(12)),
    ("x.t().reshape(2, 2, 3)", x.t().reshape(2, 2, 3)),
    ("x.t().reshape(12)", x.t().reshape(12)),
    ("x[:, :2].reshape(6)", x[:, :2].reshape(6)),
    ("x[:, 1:2].reshape(3)", x[:, 1:2].reshape(3)),
]:
    print(f"{name:<23} {layout(y)!s:<32} same storage: {same_storage(x, y)}")

# %% [markdown]
# The second line shows two things. The result of `reshape` need not be contiguous. And
# `x.t().reshape(...)` is not the same as `x.t().contiguous().view(...)`: the values agree, but the
# latter copies twelve numbers that nobody needed to move.
#
# It matters when somebody writes. Into a view the writing goes through to `x`; into a copy it does
# not, and no error tells you.
#
# **Predict.** After `x.t().reshape(-1)[0] = 99`, what is `x[0, 0]`? And after
# `x.reshape(-1)[0] = 99`? Write a tuple of both.


# %%
def write_to_the_first():
    """Write through a reshaped tensor, and look at x."""
    x = torch.arange(12).reshape(3, 4)
    x.t().reshape(-1)[0] = 99
    before = x[0, 0].item()
    x.reshape(-1)[0] = 99
    return before, x[0, 0].item()


predict(..., write_to_the_first)

# %% [markdown]
# One more thing that `reshape` is *not*: a permutation. Both of these give a tensor of size `(4, 3)`.

# %%
print(x.reshape(4, 3).tolist())
print(x.permute(1, 0).tolist())

# %% [markdown]
# `reshape` keeps the order of elements and cuts it into rows of another length. `permute` keeps each
# element's indices and exchanges their roles. If you wanted images in another order of dimensions
# and they look like noise, you have used the first for the second.
#
# **Write `reshape(x, new_size)`.** `x` has any layout. Return a tensor of size `new_size` with the
# elements of `x` in row-major order. One size may be -1.
#
# - Where PyTorch's `view` is possible, return a view of `x`: no byte is allocated, and what is
#   written to the result appears in `x`.
# - Where it is not, return a contiguous tensor in memory of its own, and allocate no more than the
#   bytes of its elements, once.
# - Where `new_size` does not fit, raise `RuntimeError`.
#
# Do not change `x`. Your `view_stride` will be of use. PyTorch's own `view`, `reshape` and `flatten`
# are off limits. `torch.as_strided`, `contiguous` and `clone` are not.
#
# <details><summary>Hint 1: ask first</summary>
#
# `view_stride(tuple(x.shape), x.stride(), new_size)` gives strides for `as_strided`, or `None`, or
# raises what must be raised.
#
# </details>
# <details><summary>Hint 2: after the copy</summary>
#
# A contiguous copy has a view of every size. Make one, and ask again.
#
# </details>
# <details><summary>Hint 3: what as_strided wants</summary>
#
# A size without -1, and the storage offset: that of `x` for a view, that of the copy for a copy.
# And mind `clone()`: it keeps the strides of what it copies if that is dense. `contiguous()` does
# not.
#
# </details>


# %% solution="reshape"
def reshape(x: torch.Tensor, new_size: tuple[int, ...]) -> torch.Tensor:
    """Return the elements of `x` in row-major order with another size, copied only if need be.

    new_size: one entry may be -1
    """
    ### BEGIN SOLUTION
    stride = view_stride(tuple(x.shape), x.stride(), new_size)
    if stride is None:
        x = x.contiguous()  # the one copy; after it every size has a view
        stride = view_stride(tuple(x.shape), x.stride(), new_size)
    known = math.prod(n for n in new_size if n != -1)
    size = [x.numel() // known if n == -1 else n for n in new_size]
    return torch.as_strided(x, size, stride, x.storage_offset())
    ### END SOLUTION


# %% grade="reshape"
grade("reshape")
# %% [markdown]
# ## Every operation on dimensions: view or copy
#
# Below are the operations that people use to rearrange tensors. The left column takes a contiguous
# `x`, the right one its transpose. Think of each line before you read it: can the result be written
# as sizes, strides and an offset?
#
# **Predict.** `flip(0)` reverses the order of rows. In NumPy `a[::-1]` is a view. Is it one in PyTorch?
# Write `"view"` or `"copy"`.

# %%
x = torch.arange(24).reshape(2, 3, 4)
predict(..., lambda: "view" if same_storage(x, x.flip(0)) else "copy")

# %%
operations = {
    "view(6, 4)": lambda a: a.view(6, 4),
    "reshape(6, 4)": lambda a: a.reshape(6, 4),
    "flatten()": lambda a: a.flatten(),
    "flatten(1)": lambda a: a.flatten(1),
    "ravel()": lambda a: a.ravel(),
    "unsqueeze(1)": lambda a: a.unsqueeze(1),
    "squeeze()": lambda a: a.squeeze(),
    "transpose(0, 1)": lambda a: a.transpose(0, 1),
    "permute(2, 0, 1)": lambda a: a.permute(2, 0, 1),
    "narrow(1, 1, 2)": lambda a: a.narrow(1, 1, 2),
    "unfold(1, 2, 1)": lambda a: a.unfold(1, 2, 1),
    "split(2)[0]": lambda a: a.split(2)[0],
    "chunk(2)[0]": lambda a: a.chunk(2)[0],
    "expand(5, -1, -1, -1)": lambda a: a.expand(5, -1, -1, -1),
    "broadcast_to((5, ...))": lambda a: a.broadcast_to((5, *a.shape)),
    "repeat(5, 1, 1, 1)": lambda a: a.repeat(5, 1, 1, 1),
    "repeat(1, 1, 1)": lambda a: a.repeat(1, 1, 1),
    "stack([a, a])": lambda a: torch.stack([a, a]),
    "cat([a, a])": lambda a: torch.cat([a, a]),
    "cat([a])": lambda a: torch.cat([a]),
    "flip(0)": lambda a: a.flip(0),
    "roll(1, 0)": lambda a: a.roll(1, 0),
    "contiguous()": lambda a: a.contiguous(),
    "clone()": lambda a: a.clone(),
}


def outcome(a, operation):
    """Say in a few words what comes of an operation."""
    try:
        result = operation(a)
    except RuntimeError:
        return "refused"
    kind = "view" if same_storage(a, result) else "copy"
    return f"{kind} {tuple(result.shape)} {result.stride()}"


for name, operation in operations.items():
    print(f"{name:<23} {outcome(x, operation):<34} {outcome(x.transpose(0, 2), operation)}")

# %% [markdown]
# Three groups. From `unsqueeze` to `broadcast_to` everything is a view of any tensor. From `repeat` to
# `roll`, and `clone`, everything is a copy, even where there is nothing to repeat or to join. The rest
# look at the layout first: `view`, `reshape`, `flatten`, `ravel`, `contiguous`.
#
# Look at the strides in the last line. `clone` keeps the order of a dense tensor, so it is no way to
# make something contiguous.
#
# `flatten` copies always and `ravel` only if it must: that is so in NumPy. In PyTorch `flatten` is a
# `reshape`, a view where there is one. And `ravel` is `contiguous().view(-1)`. Below, `y` has one
# dimension, with a step of 2. Flat it is already; contiguous it is not.
#
# **Predict.** What do `y.flatten()` and `y.ravel()` give? Write a tuple of two words, each `"view"` or
# `"copy"`.

# %%
y = torch.arange(20)[::2]
predict(
    ..., lambda: tuple("view" if same_storage(y, z) else "copy" for z in (y.flatten(), y.ravel()))
)

# %% [markdown]
#
# `stack` puts a new dimension in front, `cat` makes an old one longer. `squeeze()` takes out *every*
# dimension of size 1, also the one that was a batch of one. Name the dimension to be safe.

# %%
one = torch.zeros(1, 3, 1)
print(tuple(one.squeeze().shape), tuple(one.squeeze(2).shape), tuple(one.squeeze(1).shape))

# %% [markdown]
# `chunk(n)` cuts into parts of equal size, rounded up. What is left over may be smaller, and there may
# be fewer than `n` parts. `tensor_split(n)` gives exactly `n`.

# %%
y = torch.zeros(5, 10)
print([tuple(part.shape) for part in y.chunk(3, dim=1)])
print([tuple(part.shape) for part in y.tensor_split(3, dim=1)])

# %% [markdown]
# **Predict.** How many parts has `torch.arange(5).chunk(4)`?

# %%
predict(..., lambda: len(torch.arange(5).chunk(4)))

# %% [markdown]
# ## Do operations need contiguous inputs?
#
# Some people write `.contiguous()` wherever a tensor has been transposed, to be on the safe side.
# Matrix multiplication takes strides as they are:

# %%
from grader.instruments.memory import watch_memory
from grader.instruments.ops import watch_ops

a, b = torch.ones(32, 64), torch.ones(16, 32)
for name, multiply in [
    ("plain", lambda: a.t() @ b.t()),
    ("with contiguous()", lambda: a.t().contiguous() @ b.t().contiguous()),
]:
    with watch_ops() as ops, watch_memory() as memory:
        multiply()
    print(f"{name:<18} {memory.new_bytes:>6} bytes  {' '.join(ops.names)}")

# %% [markdown]
# The result takes 4,096 bytes. The two clones come on top and buy nothing. Where a kernel does want
# another layout, it makes the copy itself.
#
# **Predict.** What does `a.contiguous()` cost for the `a` above, which is contiguous? Write the number
# of bytes.


# %%
def cost(run):
    """Return how many bytes a call allocates."""
    with watch_memory() as memory:
        run()
    return memory.new_bytes


predict(..., lambda: cost(a.contiguous))

# %% [markdown] exercise="is_view"
# title: Say which operations copy
# minutes: 30
# difficulty: 3
# points: 6
# prerequisites: [is_contiguous, view_stride]
# teaches: >-
#   to tell from the operation and the layout, before anything runs, whether memory will be shared.
# leaves out: operations that compute something; devices other than the CPU.
# off limits: [torch.empty_strided, torch.as_strided, torch.Tensor.as_strided, torch.Tensor.set_, "aten:as_strided", "aten:set_", "aten:empty_strided", "import:numpy"]

# %% [markdown]
# Put the table to use. You are told sizes and strides of a tensor and what somebody is about to do
# with it. Will the result share its memory?
#
# **Predict.** `x` has size `(8, 1, 6)` and strides `(6, 50, 1)`. Does `x.flatten()` copy? Write `"view"`
# or `"copy"`.

# %%
x = torch.zeros(100).as_strided((8, 1, 6), (6, 50, 1))
predict(..., lambda: "view" if same_storage(x, x.flatten()) else "copy")

# %% [markdown]
# **Write `is_view(size, stride, op, *args)`.** `size` and `stride` belong to a tensor `x` with at least
# one dimension and at least one element. Return `True` if `x.op(*args)` has its bytes in the storage
# of `x`, and `False` if it is a copy. (`contiguous` may return `x` itself: that counts as `True`.)
# `op` is one of
#
# - `"transpose"`, `"permute"`, `"unsqueeze"`, `"squeeze"`, `"narrow"`, `"select"`, `"unfold"`,
#   `"chunk"`, `"split"`, `"expand"`, `"broadcast_to"`, `"diagonal"`;
# - `"repeat"`, `"flip"`, `"roll"`, `"clone"`, and `"stack"` and `"cat"`, which stand for
#   `torch.stack([x])` and `torch.cat([x])`;
# - `"reshape"` with the sizes as `args`, one of them -1 perhaps; `"flatten"` with none, one or two
#   arguments: the first and the last dimension to be flattened, counted from 0 or from the end;
#   `"contiguous"`; `"ravel"`.
#
# All calls are valid ones. The tensor itself is not there to be asked. Your earlier functions are.
#
# <details><summary>Hint 1: two sets and a rest</summary>
#
# For the first two groups the layout does not matter: a set of names is enough. Only the third group
# needs thought.
#
# </details>
# <details><summary>Hint 2: flatten is a reshape</summary>
#
# Work out the size that `flatten` leads to, and ask `view_stride` whether there is a view of that size.
#
# </details>
# <details><summary>Hint 3: the defaults</summary>
#
# `flatten()` goes from dimension 0 to dimension -1. Turn negative dimensions into positive ones
# before you slice: `size[first : last + 1]` with -1 for `last` is empty.
#
# </details>


# %% solution="is_view"
def is_view(size: tuple[int, ...], stride: tuple[int, ...], op: str, *args: int) -> bool:
    """Say whether `x.op(*args)` shares memory with an `x` of these sizes and strides."""
    ### BEGIN SOLUTION
    if op in ("repeat", "flip", "roll", "clone", "stack", "cat"):
        return False
    if op in ("contiguous", "ravel"):  # `ravel` is `contiguous().view(-1)`
        return is_contiguous(size, stride)
    if op == "reshape":
        return view_stride(size, stride, args) is not None
    if op == "flatten":
        # all dimensions from the first to the last become one, and the others stay
        first = args[0] % len(size) if args else 0
        last = args[1] % len(size) if len(args) == 2 else len(size) - 1
        merged = math.prod(size[first : last + 1])
        new_size = (*size[:first], merged, *size[last + 1 :])
        return view_stride(size, stride, new_size) is not None
    return True  # everything else only edits sizes, strides and offset
    ### END SOLUTION


# %% grade="is_view"
grade("is_view")

# %% [markdown]
# ## Shapes you will meet
#
# Layout is a matter of habit, too. Different data come with their dimensions in different orders, and
# with different dtypes.
#
# | data | size | dtype |
# |---|---|---|
# | a picture, as a file decoder gives it | `(height, width, channels)` | `uint8` |
# | a batch of pictures, as convolutions take it | `(batch, channels, height, width)` | `float32` |
# | a batch of sound | `(batch, channels, time)` | `float32` |
# | a batch of text, as token numbers | `(batch, sequence)` | `int64` |
# | the same, embedded | `(batch, sequence, hidden)` | `float32` |
#
# The channels of a decoded picture come last. `permute` brings them to the front without copying.

# %%
picture = torch.zeros(4, 5, 3, dtype=torch.uint8)
front = picture.permute(2, 0, 1)
batch = front.unsqueeze(0)
print("picture", layout(picture))
print("front  ", layout(front), same_storage(picture, front))
print("batch  ", layout(batch), batch.is_contiguous(memory_format=torch.channels_last))

# %% [markdown]
# The batch has the size that a convolution wants, and its bytes lie as the decoder left them. That is
# all there is to `channels_last`.
#
# Sound is cut into overlapping frames, and `unfold` does that without copying. Nine samples become
# four frames of three:

# %%
sound = torch.arange(9).reshape(1, 9)
frames = sound.unfold(1, 3, 2)
print(layout(frames), frames[0].tolist())

# %% [markdown]
# Attention splits the hidden size of embedded text into heads: one dimension is split, and two are
# exchanged. Both are views. Afterwards the heads are put together again.
#
# **Predict.** `heads` below has size `(2, 3, 5, 4)`. `together` transposes it back and merges the last two
# dimensions. `mixed` merges the last two dimensions of `heads` as it is. Which of them copies? Write a
# tuple of two words, each `"view"` or `"copy"`.


# %%
def split_and_merge():
    """Split a hidden size of 12 into three heads, and put them together in two ways."""
    text = torch.zeros(2, 5, 12)
    heads = text.view(2, 5, 3, 4).transpose(1, 2)
    together = heads.transpose(1, 2).reshape(2, 5, 12)
    mixed = heads.reshape(2, 3, 20)
    return tuple("view" if same_storage(text, y) else "copy" for y in (together, mixed))


predict(..., split_and_merge)

# %% [markdown]
# A real attention layer computes something in between. If the result lies in memory head by head,
# putting the heads together does copy. That is why so many implementations end with
# `transpose(1, 2).contiguous().view(...)`, or with a `reshape` that copies for them.
