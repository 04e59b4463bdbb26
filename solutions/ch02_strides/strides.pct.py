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
# off limits:
#   view operators:
#     says: "operators that make views"
#     rules: ["aten:select", "aten:slice", "aten:unsqueeze", "aten:view", "aten:transpose", "aten:permute", "aten:expand", "aten:diagonal", "aten:unbind", "aten:split", "aten:split_with_sizes", "aten:transpose_", "aten:t_", "aten:squeeze_", "aten:unsqueeze_"]
#   reshaping:
#     says: "whatever reshapes for you"
#     rules: ["aten:view", "aten:_unsafe_view", "aten:_reshape_alias", "aten:_reshape_copy", torch.Tensor.reshape, torch.reshape, torch.Tensor.view_as, torch.Tensor.reshape_as, torch.flatten, torch.Tensor.flatten, torch.Tensor.unflatten, torch.unflatten]

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

from grader import grade, hint, predict, show_storage, solution

# %% [markdown] sitting="elements"
# question: How does PyTorch find an element in a row of bytes?
# reached: >-
#   One sum: the offset, and each index times its stride. A new tensor gets its strides from its
#   sizes, and "contiguous" says that they are those.

# %% [markdown]
# ## A tensor is a record
#
# What Python calls a tensor is a small record, `TensorImpl` in PyTorch's C++. It holds the
# **sizes**, the **strides**, the **storage offset** and the **dtype**, and a pointer to a
# **storage**. The storage, `StorageImpl`, holds the bytes: an address, a length in bytes, and what
# will free them. It knows nothing of shapes or dtypes. Many tensors can point to one storage.
# (To read on: `c10/core/TensorImpl.h` and `c10/core/StorageImpl.h`.)


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
# `show_storage` draws the same: above, the cells of the storage, what they hold, and which element
# of each tensor is read there; below, each tensor as its own indices see it. Call it on any tensor
# that you wonder about.

# %%
show_storage(x=x, every_second=x[:, ::2])

# %% [markdown]
# Look: strides/address#shape=3x4&ops=transpose.0.1&at=2x1 | The transpose, element by element:
# point at one, and see which cell it reads and how its address is added up.
#
# The record has one thing more. Its **dispatch key set** says which implementations an operation on
# this tensor may have to pass through: here, among others, autograd's and then the CPU's.

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
# short: true
# parameters:
#   counts:
#     public: {stride: elements, offset: elements}
#     among:
#       - {stride: bytes, offset: elements}
#       - {stride: elements, offset: bytes}
#       - {stride: bytes, offset: bytes}
#     says: "strides that count {{counts.stride}} and an offset that counts {{counts.offset}}"
# prerequisites: []
# teaches: >-
#   the one formula of this chapter: where the element of an index lies, from strides, offset and
#   item size.
# leaves out: strides below zero, which PyTorch does not have.
# off limits: [torch.as_strided, torch.Tensor.as_strided, torch.Tensor.set_, "aten:set_", torch.frombuffer, "import:numpy", "import:ctypes"]
# forbids: "tensors made over memory of your choice"

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
# #: if counts.stride == "bytes" or counts.offset == "bytes"
# - **Not as in PyTorch**, `stride` counts {{counts.stride}} here, and `offset` {{counts.offset}}.
# #: endif
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
    #: if counts.stride == counts.offset
    stride, offset: in {{counts.stride}}
    #: else
    stride: in {{counts.stride}}; offset: in {{counts.offset}}
    #: endif
    itemsize: bytes per element
    """
    ### BEGIN SOLUTION
    if len(index) != len(size):
        raise IndexError(f"{len(index)} indices for {len(size)} dimensions")
    #: if counts.offset == "elements" and counts.stride == "bytes"
    position = offset * itemsize
    #: else
    position = offset
    #: endif
    for i, n, s in zip(index, size, stride, strict=True):
        if not -n <= i < n:
            raise IndexError(f"index {i} is out of bounds for size {n}")
        #: if counts.offset == "bytes" and counts.stride == "elements"
        position += (i + n if i < 0 else i) * s * itemsize
        #: else
        position += (i + n if i < 0 else i) * s
        #: endif
    #: if counts.offset == "bytes" or counts.stride == "bytes"
    return memory[position : position + itemsize]
    #: else
    # elements become bytes here, once, offset and all
    return memory[position * itemsize : (position + 1) * itemsize]
    #: endif
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
#
# Draw: (lambda y: show_storage(one_index=y[1], two_indices=y[1, 0]))(torch.arange(8).view(2, 2,
# 2)) | A 2 × 2 × 2 with one index and with two: each takes a dimension away, and all are views of
# the same cells.

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
print("x[:1, :1, :1].item()  ", attempt(lambda: x[:1, :1, :1].item()))
nearly = torch.tensor([1.00001])
print("nearly                ", nearly, nearly.tolist())
print("torch.arange(1001)    ", torch.arange(1001))

# %% [markdown]
# `item()` makes a Python number of a tensor with exactly one element, however many dimensions it
# has. `x[1, 2, 3]` alone is still a tensor, one with zero dimensions.
#
# `print` shows four digits, and of more than a thousand numbers the first and last three along each
# dimension. What is shown as `1.0000` need not be 1. `item()` and `tolist()` give all digits.
#
# Indices that are numbers, slices, `None` and `...` give **views**. Masks and lists of numbers
# **copy**: in general no strides lead through what they pick, and PyTorch does not look for
# exceptions.
#
# Look: strides/cells#shape=3x4&ops=index.to.1&at=1 | `x[:, 1]` of a 3 × 4 is a view: three of the
# twelve cells, four apart. Step back to see all of them.

# %%
x = torch.arange(6)
for name, y in [
    ("x[2]", x[2]),
    ("x[2:5]", x[2:5]),
    ("x[..., None]", x[..., None]),
    ("x[[2, 3, 4]]", x[[2, 3, 4]]),
    ("x[x > 1]", x[x > 1]),
]:
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
    "as_tensor(tensor)": torch.as_tensor(torch.from_numpy(array)),
    "as_tensor(list)": torch.as_tensor(numbers),
}
array[0] = numbers[0] = 7.0
for name, y in made.items():
    print(f"{name:<26} {'shares' if y[0] == 7 else 'copied'}")

# %% [markdown]
# Draw: show_cells({f"`{name}`": [(f"{value:g}", "array's" if y[0] == 7 else "own") for value in
# y.tolist()] for name, y in made.items()}) | What each of them has after the writing. The first
# colour is the array's memory, or the list's.
#
# NumPy's strides count bytes and may be negative. PyTorch's may not, and so a reversed array cannot
# be shared. `as_tensor` does not copy it either: it refuses.

# %%
print(array.strides, torch.from_numpy(array).stride())
print("from_numpy", attempt(lambda: torch.from_numpy(array[::-1]))[:60])
print("as_tensor ", attempt(lambda: torch.as_tensor(array[::-1]))[:60])
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
# short: true
# prerequisites: [read_element]
# teaches: >-
#   where strides come from: sizes, and the order in which the dimensions lie in memory.
# leaves out: converting a tensor that exists already from one order to another.
# off limits: [torch.empty_permuted, torch.Tensor.stride, torch._prims_common.make_contiguous_strides_for, "aten:permute", "aten:transpose", torch.Tensor.numpy, torch.Tensor.__array__, "import:numpy"]
# forbids: "tensors and arrays that tell their strides; NumPy"

# %% [markdown]
# A new tensor is **dense**: its elements fill the storage without gaps, each place used once. Which
# dimension comes first in memory is a choice. `torch.empty_permuted` lets you choose: it takes the
# sizes, and the dimensions in the order in which they lie in memory, outermost first.

# %%
for order in [(0, 1, 2, 3), (0, 2, 3, 1), (3, 2, 1, 0)]:
    print(order, torch.empty_permuted((2, 3, 4, 5), order).stride())

# %% [markdown]
# Draw: show_cells({f"order {order}": [(f"[{n // 3}, {n % 3}]", n // 3) for n in
# torch.empty_permuted((2, 3), order, dtype=torch.int64).copy_(torch.arange(6).view(2,
# 3)).as_strided((6,), (1,)).tolist()] for order in ((0, 1), (1, 0))}, [f"place {place}" for place
# in range(6)]) | A 2 × 3 in both orders, by its indices. Neither leaves a gap.
#
# In the first order the last dimension varies fastest: neighbours in a row are neighbours in
# memory. That is what PyTorch calls **contiguous**, or row-major. In the second, dimension 1 varies
# fastest: for images that is `channels_last`. The third is Fortran's. All three fill 120 places
# without gaps. `contiguous` is the name of one order among many, and not another word for dense.
#
# Nor is `torch.strided` a name for gaps. It is what `x.layout` says of every tensor that is described
# by strides, as opposed to the sparse ones. Fresh tensors are strided *and*, unless you ask for another
# order, contiguous.

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
# all dimensions, outermost first. Return the strides as a tuple or a list, one per dimension, in the
# order of `size`, as `torch.empty_permuted(size, order)` has them. A dimension of size 0 counts as if
# its size were 1.
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
# short: true
# prerequisites: [dense_stride]
# teaches: >-
#   that contiguity is a relation between sizes and strides, with exceptions that decide real cases:
#   sizes of one, and no elements at all.
# leaves out: channels_last_3d, and what other formats there are for sparse tensors.
# off limits: [torch.Tensor.is_contiguous, torch.Tensor.contiguous, torch._prims_common.is_contiguous, torch._prims_common.is_channels_last_contiguous, "import:numpy"]
# forbids: "whatever tells whether a tensor is contiguous"
# allowed: []

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
# Look: strides/address#shape=4x1&ops=transpose.0.1&at=0x2 | A transposed 4 × 1 is contiguous: its
# first dimension has size 1, so nobody ever takes that stride.
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
# %% [markdown] sitting="views"
# question: How can a tensor be turned, cut and indexed without touching a byte?
# reached: >-
#   A view is the same storage under other sizes, strides and another offset. Seven operations and
#   every basic index came down to that.

# %% [markdown] exercise="view_of"
# title: Make seven views by hand
# minutes: 40
# difficulty: 3
# points: 7
# short: true
# prerequisites: [read_element]
# teaches: >-
#   that transposing, slicing, expanding, taking a diagonal and sliding a window all do the same
#   thing: write other sizes, strides and offset over the same bytes.
# leaves out: writing through a view whose elements overlap.
# off limits: [view operators, "aten:t", "aten:unfold", "aten:squeeze", "aten:alias", "import:numpy"]
# forbids: "operators that make views, but `as_strided`; NumPy"

# %% [markdown]
# `torch.as_strided(x, size, stride, storage_offset)` is the one view of which all others in this chapter
# are special cases. It takes the storage of `x` and lays the record that you give it over the bytes. It
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
# Look: strides/cells#shape=4x4&ops=diagonal&at=2 | The diagonal of a 4 × 4 matrix: a single stride,
# 4 + 1 = 5. Step back to see the matrix.
#
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
# off limits: [torch.Tensor.__getitem__, view operators, "import:numpy"]
# forbids: "brackets on tensors, and operators that make views, but `as_strided`; NumPy"

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

# %% [markdown] sitting="same-bytes"
# question: Which elements are the same bytes?
# reached: >-
#   Two tensors share memory if some byte belongs to an element of each; where the first elements
#   lie does not tell. A broadcast dimension has stride 0: all its elements are one.

# %% [markdown] exercise="share_memory"
# title: Find out whether two tensors share a byte
# minutes: 30
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
# Draw: show_storage(even=even, odd=odd) | One storage, two tensors, and no cell that both read.
#
# Comparing storages says whether two tensors *could* share. (Older texts use `x.storage()`, which is
# deprecated. `untyped_storage()` is the real thing.) But `even` and `odd` live in one storage and have
# no byte in common.
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
# minutes: 30
# difficulty: 3
# points: 7
# prerequisites: [view_of]
# teaches: >-
#   that broadcasting is a view: sizes are matched from the right, and whatever is repeated has
#   stride 0.
# leaves out: the strides of an operation's *result*, which PyTorch chooses from those of its inputs.
# off limits: [torch.broadcast_shapes, torch._refs._broadcast_shapes, torch._C._infer_size, "import:numpy"]
# forbids: functions that broadcast shapes; NumPy
# allowed: []

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
#
# Look: strides/cells#shape=1x4&ops=expand.3.4&at=2x1 | Three rows that are one: their stride is 0,
# so every row reads the same four cells.

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

# %% [markdown] sitting="view-rule"
# question: When can a tensor take another shape without a copy?
# reached: >-
#   When each group of dimensions that is to be merged can be walked with one stride. Contiguous
#   is enough, and is not needed.

# %% [markdown] exercise="view_stride"
# title: Decide whether a view is possible
# minutes: 60
# difficulty: 5
# points: 9
# short: true
# prerequisites: [is_contiguous, view_of]
# teaches: >-
#   the exact rule behind `view`: which dimensions can be merged, which cannot, and why a tensor need
#   not be contiguous.
# leaves out: "`x.view(dtype)`, which reads the same bytes as another dtype."
# off limits: [reshaping, torch._subclasses.fake_impls._compute_stride, "import:numpy"]
# forbids: "whatever reshapes for you; NumPy"
# allowed: []

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
# Look: strides/view#shape=3x4&ops=transpose.0.1&target=12 | A transposed tensor is two runs, and a
# row of 12 would reach across the jump between them. Ask for 2, 2, 3, and it is a view.
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

# %% [markdown] sitting="copies"
# question: Which everyday calls copy?
# reached: >-
#   Those whose result no record can describe over the old bytes. `reshape` decides in silence,
#   and you can foresee it from sizes and strides alone.

# %% [markdown] exercise="reshape"
# title: Reshape by a view, or by one copy
# minutes: 30
# difficulty: 4
# points: 7
# prerequisites: [view_stride]
# teaches: >-
#   when `reshape` aliases its input and when it silently stops to, and what the copy costs.
# leaves out: reshaping tensors that are sparse, nested or quantized.
# off limits: [reshaping, torch.ravel, torch.Tensor.ravel, "import:numpy"]
# forbids: "whatever reshapes for you; NumPy"

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
# Look: strides/cells#shape=3x4&ops=transpose.0.1_reshape.12&at=1 | `x.t().reshape(12)` had to copy:
# there is a second storage, with the numbers in another order. Step back to see the first.
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
#
# Draw: (lambda y: show_storage(reshaped=y.reshape(3, 2), permuted=y.permute(1,
# 0)))(torch.arange(6).view(2, 3)) | Six cells, and two ways to read them with size 3, 2.

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
# Draw: show_cells({name: [(str(value), value // 4) for value in y.flatten().tolist()] for name, y
# in (("left", torch.arange(8).view(2, 2, 2)), ("right", torch.arange(8).view(2, 2,
# 2).transpose(0, 2)))}) | The two columns' tensors in small, element after element: one follows
# its storage, the other jumps.
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
# Look: strides/cells#shape=3x4&ops=flip.0&at=0x1 | `x.flip(0)` copied: the last row first would
# take a negative stride. Step back to see the order before.
#
# Look at the strides in the last line. `clone` keeps the order of a dense tensor, so it is no way to
# make something contiguous.
#
# `flatten` copies always and `ravel` only if it must: that is so in NumPy.

# %%
array = numpy.arange(6)
for flat in (array.flatten(), array.ravel()):
    print("shares" if numpy.shares_memory(array, flat) else "copied")

# %% [markdown]
# In PyTorch `flatten` is a `reshape`, a view where there is one. And `ravel` is `contiguous().view(-1)`
# (both in `aten/src/ATen/native/TensorShape.cpp`). Below, `y` has one dimension, with a step of 2. Flat
# it is already; contiguous it is not.
#
# **Predict.** What do `y.flatten()` and `y.ravel()` give? Write a tuple of two words, each `"view"` or
# `"copy"`.

# %%
y = torch.arange(20)[::2]
predict(
    ..., lambda: tuple("view" if same_storage(y, z) else "copy" for z in (y.flatten(), y.ravel()))
)

# %% [markdown]
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
# Matrix multiplication takes the strides of a transpose as they are:

# %%
from grader import watch_memory, watch_ops

a, b = torch.ones(32, 64), torch.ones(16, 32)
for name, multiply in [
    ("plain", lambda: a.t() @ b.t()),
    ("with contiguous()", lambda: a.t().contiguous() @ b.t().contiguous()),
]:
    with watch_ops() as ops, watch_memory() as memory:
        multiply()
    print(f"{name:<18} {memory.new_bytes:>6} bytes  {' '.join(ops.names)}")

# %% [markdown]
# Draw: show_bars({"the result": (a.t() @ b.t()).nbytes, "the two clones on top": a.nbytes +
# b.nbytes}, "bytes") | What somebody pays to be on the safe side.
#
# The result takes 4,096 bytes. The two clones come on top and buy nothing. Where a kernel does want
# another layout, it makes the copy itself, as `addmm_impl_cpu_` does where no dimension of a matrix has
# stride 1 (`aten/src/ATen/native/LinearAlgebra.cpp`).
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
# off limits: ["import:numpy"]
# allowed: []

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

# %% [markdown] exercise="to_channels_last"
# title: Lay an image out channels last
# minutes: 25
# difficulty: 3
# points: 6
# prerequisites: [is_contiguous, view_of]
# teaches: >-
#   that the order of the dimensions and the order of the bytes are two things, and that
#   "contiguous" speaks of sizes and strides, not of memory with or without gaps.
# leaves out: which kernels run faster on which layout; empty tensors.
# off limits: [torch.channels_last, torch.channels_last_3d]

# %% [markdown]
# PyTorch writes a batch of images as `(batch, channels, height, width)`, NCHW for short. Read
# aloud, that is a promise about *indices*: `x[0, 2, 5, 7]` is channel 2 of pixel (5, 7). It promises
# nothing about *memory*. Two orders of memory are common for the same indices:
#
# - **row-major**: one channel's whole plane after the other, all red, then all green, then all blue;
# - **channels last**: pixel after pixel, each with its red, green and blue side by side.
#
# Some convolution kernels are faster with the second, says PyTorch's tutorial *Channels Last Memory
# Format in PyTorch*. You need not give up the four letters for it. Strides say where the next channel is:

# %%
x = torch.arange(24).reshape(1, 2, 3, 4)
y = x.to(memory_format=torch.channels_last)
print("shape     ", tuple(x.shape), "and", tuple(y.shape))
print("elements  ", "the same" if torch.equal(x, y) else "different")
print("strides   ", x.stride(), "and", y.stride())
for name, tensor in (("row-major", x), ("channels last", y)):
    memory = tensor.as_strided((24,), (1,), 0)
    print(f"{name:<14}", *(f"{value:>2}" for value in memory.tolist()))

# %% [markdown]
# Draw: show_cells({name: [(str(value), value // 4) for value in image.as_strided((12,), (1,),
# 0).tolist()] for name, image in (("row-major", torch.arange(12).view(1, 3, 2, 2)), ("channels
# last", torch.arange(12).view(1, 3, 2, 2).to(memory_format=torch.channels_last)))}) | Three
# channels of 2 × 2 in memory, a colour for each.
#
# The shape stayed and the bytes moved. Converting to **NHWC** is something else: there the *shape*
# becomes `(batch, height, width, channels)`, and all code that counts on channels in place 1 must
# change with it. `x.permute(0, 2, 3, 1)` does that, and moves no byte.
#
# Look: strides/cells#shape=1x3x2x4&ops=channels-last&at=0x1x1x2 | Channels last: the indices are as
# before, and the three channels of a pixel lie side by side.
#
# | | shape | bytes |
# |---|---|---|
# | `x.permute(0, 2, 3, 1)` | change | stay |
# | channels last | stays | move |
#
# **Predict.** `y` has no gaps: every one of its 24 cells is used once, side by side. Is it
# contiguous?

# %%
predict(..., lambda: y.is_contiguous())

# %% [markdown]
# "Contiguous" in PyTorch does not mean "without gaps". It means that the strides are those of
# row-major order for this shape. Whether a tensor is **dense** is another question. Nothing is
# stored about either: both are computed from sizes and strides. And so one tensor can be contiguous
# in both orders, if a size is 1 and its stride is never used:

# %%
gray = torch.zeros(2, 1, 3, 4)
for name, tensor in (("x", x), ("y", y), ("gray", gray), ("x[:, :, ::2]", x[:, :, ::2])):
    cells = {
        sum(i * s for i, s in zip(index, tensor.stride(), strict=True))
        for index in torch.cartesian_prod(*(torch.arange(n) for n in tensor.shape)).tolist()
    }
    dense = len(cells) == tensor.numel() == max(cells) + 1
    last = tensor.is_contiguous(memory_format=torch.channels_last)
    print(f"{name:<13} dense {dense!s:<6} row-major {tensor.is_contiguous()!s:<6} last {last}")

# %% [markdown]
# Many operators carry the layout on. That is how one conversion at the entrance can serve a whole network:

# %%
conv = torch.nn.Conv2d(2, 5, kernel_size=2)
print("y + 1             ", (y + 1).stride())
print("y.clone()         ", y.clone().stride())
print("conv(y)           ", conv(y.float()).stride(), tuple(conv(y.float()).shape))
print("y.contiguous()    ", y.contiguous().stride())

# %% [markdown]
# PyTorch has names for the layout with four dimensions (`channels_last`) and with five
# (`channels_last_3d`), and none for sound, `(batch, channels, time)`. The idea does not care.
#
# **Write `to_channels_last(x)`.** `x` is a tensor of shape `(n, c, ...)` with three or more
# dimensions, every size at least 1, of any dtype and layout. Return a tensor of the same shape,
# dtype and elements, whose strides are exactly those of memory in the order batch, then all
# dimensions from the third on, then channels. For `(n, c, h, w)` they are
# $(h\,w\,c,\; 1,\; w\,c,\; c)$. Where a size is 1 its stride matters to nobody; ours follow
# the formula even so.
#
# - If the elements of `x` already lie in that order and without gaps, the result is a view of `x`,
#   with its strides put right: no byte is copied.
# - Otherwise the bytes are copied **once**. The storage of the result holds its elements and nothing
#   else, and it is the only memory that is allocated.
#
# `memory_format=torch.channels_last` is off limits. `contiguous()` without it is not.
#
# <details><summary>Hint 1: two permutations</summary>
#
# Which permutation of `x` should have row-major strides? Make it so, then permute back.
#
# </details>
# <details><summary>Hint 2: copy once, or not at all</summary>
#
# `contiguous()` returns the very same tensor if there is nothing to do. Any other `contiguous()`,
# `clone()` or `reshape` on the way may cost a copy that nobody needs.
#
# </details>
# <details><summary>Hint 3: sizes of 1</summary>
#
# Look at `torch.zeros(2, 1, 3, 4).permute(0, 2, 3, 1).contiguous().stride()`. The last stride is strange,
# and nobody minds. `as_strided(size, stride)` lets you write down the ones you want; without a third
# argument it begins where the tensor begins.
#
# </details>


# %% solution="to_channels_last"
def to_channels_last(x: torch.Tensor) -> torch.Tensor:
    """Return x with its channels side by side in memory.

    x: (n, c, ...), three or more dimensions, no size 0
    returns: the same shape and elements; strides of (n, ..., c) in row-major order
    """
    ### BEGIN SOLUTION
    last = [0, *range(2, x.dim()), 1]
    ordered = x.permute(last).contiguous()  # copies only if the order in memory is another
    # Where a size is 1, contiguous() accepts any stride. Write all of them down anew.
    strides = [1] * x.dim()
    for dim in range(x.dim() - 2, -1, -1):
        strides[dim] = strides[dim + 1] * ordered.shape[dim + 1]
    channels = strides.pop()
    strides.insert(1, channels)
    return ordered.as_strided(x.shape, strides)
    ### END SOLUTION


# %% grade="to_channels_last"
grade("to_channels_last")

# %% [markdown] sitting="overlap"
# question: Can a tensor reach the same byte twice?
# reached: >-
#   Overlapping windows do: six strides over the same image. Reading them is free. To write
#   through them is an error, where PyTorch can tell.

# %% [markdown]
# ## Shapes you will meet
#
# Layout is a matter of habit, too. Different data come with their dimensions in different orders, and
# with different dtypes.
#
# | data | size | dtype |
# |---|---|---|
# | a picture, as Pillow hands it to NumPy | `(height, width, channels)` | `uint8` |
# | a batch of pictures, as convolutions take it | `(batch, channels, height, width)` | `float32` |
# | a batch of sound | `(batch, channels, time)` | `float32` |
# | the same, cut into frames, each described by features | `(batch, frames, features)` | `float32` |
# | a batch of text, as token numbers | `(batch, sequence)` | `int64` |
# | the same, embedded | `(batch, sequence, hidden)` | `float32` |
#
# The channels of such a picture come last. `permute` brings them to the front without copying.
#
# Sound is cut into overlapping frames, and `unfold` does that without copying. Below, nine samples become
# four frames of three:

# %%
picture = torch.zeros(4, 5, 3, dtype=torch.uint8)
front = picture.permute(2, 0, 1)
batch = front.unsqueeze(0)
print("picture", layout(picture))
print("front  ", layout(front), same_storage(picture, front))
print("batch  ", layout(batch), batch.is_contiguous(memory_format=torch.channels_last))
sound = torch.arange(9).reshape(1, 9)
frames = sound.unfold(1, 3, 2)
print("frames ", layout(frames), frames[0].tolist())

# %% [markdown]
# The batch has the size that a convolution wants, and its bytes lie as the decoder left them. That is
# all there is to `channels_last`. Features of frames are the fourth row of the table; a convolution over
# time wants them with time last, which is `transpose(1, 2)`, a view.
#
# Why can the order of bytes matter to speed? A processor reads memory in **lines**, of 64 bytes on most of
# them. Whoever reads one number has its neighbours in the cache as well.
#
# **Predict.** An image has 64 channels of 56 × 56 `float32` numbers. A 1 × 1 convolution needs all channels of a
# pixel. In how many lines do they lie, row-major and channels last? Write a pair.


# %%
def lines_of_a_pixel():
    counts = []
    for order in (torch.contiguous_format, torch.channels_last):
        image = torch.zeros(1, 64, 56, 56).contiguous(memory_format=order)
        first, step = image.data_ptr(), 4 * image.stride(1)
        lines = {(first + channel * step) // 64 for channel in range(64)}
        counts.append(len(lines))
    return tuple(counts)


predict(..., lines_of_a_pixel)

# %% [markdown]
# In row-major order each line has one number of this pixel and fifteen of others. They are read again if
# they have left the cache before it is their turn.
#
# Draw: show_cells({name: ["this pixel" if at % step == 0 else "others" for at in range(16)] for name, step in
# (("row-major", 16), ("channels last", 1))}, bare=True) | One line of memory, 16 numbers, in both orders.
# Coloured is what belongs to the pixel.
#
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
# putting the heads together does copy:

# %%
heads = torch.zeros(2, 5, 12).view(2, 5, 3, 4).transpose(1, 2)
computed = torch.eye(5) @ heads
print(computed.stride(), same_storage(computed, computed.transpose(1, 2).reshape(2, 5, 12)))

# %% [markdown]
# That is why many implementations end with `transpose(1, 2).contiguous().view(...)`, or with a
# `reshape` that copies for them.

# %% [markdown] exercise="windows"
# title: See every window of an image at once
# minutes: 35
# difficulty: 3
# points: 8
# prerequisites: [view_of, to_channels_last]
# teaches: >-
#   that overlapping windows, the heart of convolution and pooling, are a view: six strides made of
#   four, and no byte copied.
# leaves out: gradients through the windows; windows that hang over the edge without padding.
# off limits: [torch.Tensor.unfold, torch.nn.functional.unfold, torch.nn.Unfold, "aten:unfold", "aten:im2col", "import:numpy"]
# forbids: "whatever unfolds for you; NumPy"

# %% [markdown]
# Pooling takes the largest number of each window of an image; convolution takes a weighted sum of
# each. The textbook's first step is to write all windows out, one after the other, and that is
# called **im2col**. It costs memory: with windows of 3 × 3 at every place, each pixel that is not near
# an edge is written nine times.
#
# Strides need not visit a cell only once. In one dimension:

# %%
row = torch.arange(6) * 10
threes = row.as_strided((4, 3), (1, 1))  # the next window: one on. The next place in it: one on.
print(threes.tolist())
show_storage(threes)

# %% [markdown]
# Twelve elements live in six cells, and no byte was copied. Moving to the next *window* and moving
# to the next *place in a window* are two dimensions, and nothing forbids that both have stride 1.
#
# Look: strides/cells#shape=6&ops=unfold.0.3.1&at=1x2 | Four windows of three in six cells. Point at
# an element: those in a dashed frame are the same cell.
#
# - **stride** 2: the next window begins two cells on, and the first of the two numbers doubles;
# - **dilation** 2: the places of a window lie two cells apart, and the second doubles.
#
# **Predict.** `image` below is a part of a larger one. Which strides, rows first, does a view
# `(window rows, window columns, 3, 3)` of it have, if windows begin at every second row and every
# column, and their places lie side by side? Write a tuple of four.

# %%
image = torch.arange(200).reshape(10, 20)[1:9, 3:11]
predict(..., lambda: image.unfold(0, 3, 2).unfold(1, 3, 1).stride())

# %% [markdown]
# **Padding** is the one thing that no view can do: zeros around the image have to be somewhere. So
# the image is copied into a larger one, once, and the windows are a view of *that*.
#
# **Write `windows(x, kernel, stride, dilation, padding)`.** `x` is a tensor of shape
# `(n, c, h, w)`, of any dtype and layout. The other four are pairs of whole numbers, for rows and for
# columns. Return a tensor of shape `(n, c, i, j, kernel[0], kernel[1])` with
#
# `result[n, c, i, j, a, b] = x[n, c, i * stride[0] + a * dilation[0], j * stride[1] + b * dilation[1]]`
#
# and with as many windows $i$ and $j$ as fit. With padding, `x` stands for the image with
# `padding[0]` rows of zeros above and below it and `padding[1]` columns left and right of it.
#
# - Without padding the result is a view of `x`, whatever layout `x` has. No byte is copied.
# - With padding, the padded image is all that is allocated.
# - If not one window fits, raise a `ValueError`.
#
# `unfold` is off limits, in each of its forms.
#
# <details><summary>Hint 1: how many</summary>
#
# A window of $k$ places that lie $d$ apart reaches over $d\,(k-1) + 1$ cells. The last one must
# begin early enough to end within the image.
#
# </details>
# <details><summary>Hint 2: six strides</summary>
#
# `x.stride()` has four numbers. One more window down costs `stride[0]` rows; one more place down in
# a window costs `dilation[0]` rows. A row costs `x.stride(2)` cells, in any layout.
#
# </details>
# <details><summary>Hint 3: what copies without being asked</summary>
#
# `torch.nn.functional.pad` with zeros for all pads still returns a copy. So does `contiguous()` on
# a permuted image, and a permuted image needs no help here.
#
# </details>


# %% solution="windows"
Pair = tuple[int, int]


def windows(
    x: torch.Tensor, kernel: Pair, stride: Pair, dilation: Pair, padding: Pair
) -> torch.Tensor:
    """Return all windows of a batch of images, as a view wherever that is possible.

    x: (n, c, h, w)
    returns: (n, c, window rows, window columns, kernel[0], kernel[1])
    """
    ### BEGIN SOLUTION
    if any(padding):
        (above, left), (h, w) = padding, x.shape[2:]
        padded = x.new_zeros(*x.shape[:2], h + 2 * above, w + 2 * left)
        padded[:, :, above : above + h, left : left + w] = x
        x = padded
    counts, between, within = [], [], []
    for dim in range(2):
        room = x.shape[2 + dim] - dilation[dim] * (kernel[dim] - 1) - 1
        if room < 0:
            raise ValueError("a window is larger than the image")
        counts.append(room // stride[dim] + 1)
        # Ask the tensor what a step costs; a computed row-major stride is a guess about its layout.
        between.append(x.stride(2 + dim) * stride[dim])
        within.append(x.stride(2 + dim) * dilation[dim])
    return x.as_strided((*x.shape[:2], *counts, *kernel), (*x.stride()[:2], *between, *within))
    ### END SOLUTION


# %% grade="windows"
grade("windows")

# %% [markdown]
# ### What windows are good for
#
# Pooling is now a reduction over the last two dimensions, and convolution a contraction:

# %%
from grader import watch_memory

x = torch.arange(2 * 3 * 8 * 8).reshape(2, 3, 8, 8).remainder(7).float()
weight = torch.arange(4 * 3 * 3 * 3).reshape(4, 3, 3, 3).remainder(5).float()
seen = x.unfold(2, 3, 1).unfold(3, 3, 1)  # as `windows` returns it for 3 × 3

pooled = seen.amax((-2, -1))
print("max pooling agrees ", torch.equal(pooled, torch.nn.functional.max_pool2d(x, 3, 1)))
with watch_memory() as memory:
    product = torch.einsum("ncijab,ocab->noij", seen, weight)
print("convolution agrees ", torch.equal(product, torch.nn.functional.conv2d(x, weight)))
print(
    "bytes of x", x.nbytes, " of the result", product.nbytes, " largest made", memory.largest_bytes
)

# %% [markdown]
# Draw: show_bars({"x": x.nbytes, "the result": product.nbytes, "the windows, written out":
# memory.largest_bytes}, "bytes") | 36 windows of 9 cells
# out of 64: five times `x`.
#
# The view cost nothing, and then `einsum` wrote all windows out after all: matrix products want
# dimensions that can be merged into one, and overlapping ones cannot. A reduction such as `amax`
# reads the view as it is. A view is free until an operator needs another layout.

# %% [markdown] exercise="overlaps"
# title: Find out whether a tensor overlaps itself
# minutes: 40
# difficulty: 4
# points: 6
# prerequisites: [broadcast_strides, windows]
# teaches: >-
#   when two indices of one tensor reach the same cell, why PyTorch answers that with yes, no and
#   "too hard", and what in-place operators do about it.
# leaves out: overlap of one tensor with another; the general problem, for which no fast way is known.
# off limits: []

# %% [markdown]
# Twelve elements in six cells are fine as long as one reads. Now write:

# %%
row = torch.zeros(6)
row.unfold(0, 3, 1).add_(1)
print("windows + 1 ", row.tolist())

row.unfold(0, 3, 1).copy_(torch.arange(12.0).reshape(4, 3))
print("windows := 0 to 11", row.tolist())

try:
    torch.zeros(3).expand(4, 3).add_(1)
except RuntimeError as error:
    print("expanded + 1: ", str(error).split(".")[0])

cells = torch.zeros(3)
cells.expand(4, 3).fill_(1)
print("expanded := 1", cells.tolist())

# %% [markdown]
# Draw: show_bars({f"cell {cell}": count for cell, count in enumerate(torch.arange(6).unfold(0, 3,
# 1).flatten().bincount().tolist())}) | How many indices of the windows lead to each
# cell, and so how often 1 was added there.
#
# Four programs, and each ends differently. Adding to overlapping windows adds once for *each index*
# that reaches a cell. Copying lets some write win, here the last. Adding to an expanded tensor is
# refused. Filling it is not, for it makes no difference who wins.
#
# It is a false belief that PyTorch refuses all in-place operators on overlapping tensors. It looks
# at sizes and strides for a moment only, and has three answers:

# %%
names = {0: "no", 1: "yes", 2: "too hard"}
big = torch.zeros(20)
for size, stride in (
    ((3, 4), (4, 1)),
    ((3, 4), (1, 3)),
    ((4, 3), (0, 1)),
    ((4, 3), (1, 1)),
    ((3, 3), (2, 3)),
):
    answer = torch._debug_has_internal_overlap(big.as_strided(size, stride))
    print(f"size {size} stride {stride} overlap: {names[answer]}")

# %% [markdown]
# "Yes" is said where a size above 1 has the stride 0. "No" is said where the tensor is dense. With
# "too hard" the operator goes on, at your risk. (In C++ the function is called
# `has_internal_overlap`, in `aten/src/ATen/MemoryOverlap.cpp`.)
#
# **Predict.** The last of the five, size (3, 3) and stride (2, 3): do two of its indices reach the
# same cell? `True` or `False`.

# %%
predict(..., lambda: len({2 * i + 3 * j for i in range(3) for j in range(3)}) < 9)

# %% [markdown]
# You are to be exact. Two different indices $i$ and $i'$ reach the same cell if
#
# $$\sum_d (i_d - i'_d)\, s_d = 0$$
#
# In general this is as hard as finding a subset of numbers with a given sum. For tensors as they
# occur it is easy, since most dimensions **tower** above the rest: one step along them is longer
# than all that the dimensions with smaller strides can reach together. A row of a matrix is longer
# than all steps within a row. If the dimension with the largest stride towers above all others, it takes
# no part in any overlap.
#
# **Write `overlaps(size, stride)`.** Both are tuples of as many whole numbers, none negative.
# Return `True` if two different indices reach the same cell, and `False` otherwise.
#
# Sizes and strides may be in the millions, so do not visit each element. But drop the dimension with the
# largest stride if it towers above the others, and again from what is left, as long as one does:
# what remains then spans at most 65,536 cells in our questions. It may have more elements than that.
#
# <details><summary>Hint 1: what never matters</summary>
#
# The stride of a size-1 dimension is never used. A tensor without elements has no two indices.
#
# </details>
# <details><summary>Hint 2: how far the others reach</summary>
#
# From the first cell to the last, dimensions reach $\sum_d (n_d - 1)\, s_d$ cells. The dimension with
# the largest stride towers if that stride is larger than this sum over all the others.
#
# </details>
# <details><summary>Hint 3: the rest</summary>
#
# Begin with cell 0, and add the dimensions one by one. If the cells reached so far are a set $C$,
# the next dimension reaches $C$, $C + s$, $C + 2s$, … Is one of these a cell that was reached
# before? More elements than cells must collide, so the search ends early when there is overlap.
#
# </details>


# %% solution="overlaps"
def overlaps(size: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Say whether two different indices of such a tensor reach the same cell.

    size, stride: of the same length, nothing negative
    """
    ### BEGIN SOLUTION
    if 0 in size:
        return False
    dims = sorted((stride[d], size[d]) for d in range(len(size)) if size[d] > 1)
    # Equal sums need steps of equal length. A step too long for all others together has no match.
    while dims and dims[-1][0] > sum(step * (count - 1) for step, count in dims[:-1]):
        dims.pop()
    reached = 1  # bit k says that cell k was reached
    for step, count in dims:
        moved = reached
        for _ in range(count - 1):
            moved <<= step
            if reached & moved:
                return True
            reached |= moved
    return False
    ### END SOLUTION


# %% grade="overlaps"
grade("overlaps")

# %% [markdown] sitting="sharing"
# question: Who else sees it when a tensor changes, and is saved?
# reached: >-
#   Whoever reaches the same cells of the same storage. A storage is saved whole, unless you keep
#   what the views need and how they lie in it.

# %% [markdown] exercise="alias_graph"
# title: Find out who shares memory with whom
# minutes: 30
# difficulty: 3
# points: 6
# prerequisites: [share_memory, overlaps]
# teaches: >-
#   that a storage is shared, that sharing one is not yet overlapping in it, and where the bytes of a
#   tensor are.
# leaves out: storages that overlap each other, as `torch.frombuffer` can make them.
# off limits: []

# %% [markdown]
# A write through one tensor may show up in another. Which ones? A common answer compares
# `data_ptr()`:

# %%
w = torch.zeros(12, 4)
q, k, v = w.chunk(3)  # three views of one matrix, as in attention
print("q begins where w begins", q.data_ptr() == w.data_ptr())
print("k begins where w begins", k.data_ptr() == w.data_ptr())
k.fill_(1)
print("and yet, rows 4 and 8 of w:", w[4].tolist(), w[8].tolist())

# %% [markdown]
# `Tensor.data_ptr()` is the address of the tensor's **first element**, offset included. The address
# of the memory itself is the storage's:

# %%
for name, tensor in (("w", w), ("q", q), ("k", k), ("v", v)):
    from_start = tensor.data_ptr() - w.untyped_storage().data_ptr()
    same = tensor.untyped_storage().data_ptr() == w.untyped_storage().data_ptr()
    print(
        name,
        "offset",
        tensor.storage_offset(),
        " bytes in",
        f"{from_start:>3}",
        " w's storage",
        same,
    )

# %% [markdown]
# `Tensor.storage()` still exists and warns: it is a *typed* storage, of the days when a storage
# had a dtype. A storage today is a number of bytes. `x.untyped_storage()` gives you that.

# %%
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(type(w.storage()).__name__, w.storage().dtype)
print(str(caught[0].message).split(".")[0])

# %% [markdown]
# Sharing a storage is one thing, reaching the same bytes another. `q` and `k` share a storage and
# have no byte in common. Whether two tensors do cannot be read off where they begin and end either.
#
# Look: strides/cells#shape=3x4&ops=index.to.toto2&at=1x1 | `x[:, ::2]` shares a storage of twelve
# cells, and reaches six. Whoever holds the others meets it nowhere.
#
# **Predict.** `x` has ten `int64` elements. How many bytes do `x[::2]` and `x[1::2]` have in common?
# And `x[::2]` and `x[::3]`? Write a tuple of two numbers.

# %%
predict(..., lambda: (len({0, 2, 4, 6, 8} & {1, 3, 5, 7, 9}) * 8, len({0, 6}) * 8))

# %% [markdown]
# **Write `alias_graph(tensors)`.** `tensors` is a list of tensors of any dtypes and layouts. Return
# a `dict` with a key `(i, j)`, $i < j$, for each pair of them that lives in the same storage. The
# value is the number of bytes of memory that both reach: 0 if there are none. Each byte counts
# once, however many indices reach it.
#
# A tensor without elements reaches no byte, though it lives in a storage like any other. A storage
# of 0 bytes is shared by nobody.
#
# <details><summary>Hint 1: the same storage</summary>
#
# `x.untyped_storage().data_ptr()` is the same for tensors in the same storage. All storages of 0
# bytes have the address 0.
#
# </details>
# <details><summary>Hint 2: bytes, not elements</summary>
#
# Offsets and strides count elements. One storage may hold tensors of several dtypes
# (`x.view(torch.int16)`, `x.real`), so multiply everything by `x.element_size()`; and an element
# reaches more than one byte.
#
# </details>
# <details><summary>Hint 3: exactly</summary>
#
# Take a tensor of `bool` with one element for each byte of the storage, and set those that your
# tensor reaches. A view of it with the right size, stride and offset can do that in one call: one
# dimension more, for the bytes of an element.
#
# </details>


# %% solution="alias_graph"
def alias_graph(tensors: list[torch.Tensor]) -> dict[tuple[int, int], int]:
    """Return the pairs of tensors that share a storage, with the bytes that both reach."""

    ### BEGIN SOLUTION
    def reached(x: torch.Tensor) -> torch.Tensor:
        """Return for each byte of the storage whether an element of x uses it."""
        width = x.element_size()
        cells = torch.zeros(x.untyped_storage().nbytes(), dtype=torch.bool)
        strides = [step * width for step in x.stride()]
        seen = cells.as_strided((*x.shape, width), (*strides, 1), x.storage_offset() * width)
        seen.fill_(True)  # where indices overlap, each of them writes the same
        return cells

    homes = [x.untyped_storage() for x in tensors]
    pairs = {}
    for j in range(len(tensors)):
        for i in range(j):
            if homes[i].nbytes() and homes[i].data_ptr() == homes[j].data_ptr():
                common = reached(tensors[i]) & reached(tensors[j])
                pairs[i, j] = int(common.sum())
    return pairs
    ### END SOLUTION


# %% grade="alias_graph"
grade("alias_graph")

# %% [markdown]
# ### One floor below
#
# Even storages can overlap. PyTorch then knows nothing of it, and neither does `alias_graph`:

# %%
buffer = bytearray(16)
front = torch.frombuffer(buffer, dtype=torch.int32)
back = torch.frombuffer(buffer, dtype=torch.int32, offset=8)
same = front.untyped_storage().data_ptr() == back.untyped_storage().data_ptr()
back[0] = 7
print("the same storage:", same, " front:", front.tolist())

# %% [markdown] exercise="pack_views"
# title: Save views without what they are views of
# minutes: 45
# difficulty: 4
# points: 6
# prerequisites: [overlaps, alias_graph]
# teaches: >-
#   why a small slice makes a large checkpoint, why `clone()` is half a remedy, and how to keep both
#   the sharing and the disk.
# leaves out: gaps within a group of tensors that overlap; tensors with gradients or conjugate bits.
# off limits: []

# %% [markdown]
# A tensor saved is a storage saved. `torch.save` keeps the sharing between tensors, and for that it
# writes each storage once, **whole**:

# %%
import io
import pickle


def saved_bytes(things: object) -> int:
    """Return how long the file is that torch.save makes of them."""
    file = io.BytesIO()
    torch.save(things, file)
    return len(file.getvalue())


log = torch.zeros(100_000)
last = log[-10:]
print("ten numbers, a view     ", saved_bytes(last))
print("ten numbers, a clone    ", saved_bytes(last.clone()))
print("ten numbers, pickled    ", len(pickle.dumps(last)) // 1000, "thousand")

# %% [markdown]
# Draw: show_bars({"a view of ten": saved_bytes(last), "a clone of ten":
# saved_bytes(last.clone())}, "bytes") | The two files.
#
# 400 kB for 40 bytes, and `pickle` does the same. The usual remedy is `clone()`. It has a price of its
# own:

# %%
table = torch.zeros(1000, 8)
state = {"embedding": table[:4], "output": table[2:6]}  # rows 2 and 3 are tied
for name, things in (
    ("as they are", state),
    ("cloned", {name: tensor.clone() for name, tensor in state.items()}),
):
    file = io.BytesIO()
    torch.save(things, file)
    file.seek(0)
    back = torch.load(file)
    back["embedding"][2:].fill_(1)
    print(
        f"{name:<12} {len(file.getvalue()):>6} bytes, still tied:", bool(back["output"][0, 0] == 1)
    )

# %% [markdown]
# You are to have both: the sharing, and the small file. A packed list of tensors has two parts,
# **buffers** and **layouts**. This function unpacks it:

# %%
Layout = tuple[int, torch.dtype, tuple[int, ...], tuple[int, ...], int]


def unpack_views(buffers: list[torch.Tensor], layouts: list[Layout]) -> list[torch.Tensor]:
    """Return the tensors: each a view of the storage of its buffer."""
    return [
        torch.empty(0, dtype=dtype).set_(buffers[which].untyped_storage(), offset, size, stride)
        for which, dtype, size, stride, offset in layouts
    ]


one_buffer = torch.arange(6, dtype=torch.uint8)
print(
    unpack_views([one_buffer], [(0, torch.int16, (2,), (1,), 1), (0, torch.uint8, (3,), (2,), 0)])
)

# %% [markdown]
# **Predict.** `a = log[:10]`, `b = log[5:20]` and `c = log[50:60]` are saved as small as can be,
# with what sharing there is. How many bytes of buffers are that?

# %%
predict(..., lambda: (20 + 10) * log.element_size())

# %% [markdown]
# **Write `pack_views(tensors)`.** `tensors` is a list of tensors of any dtypes and layouts. Return
# `(buffers, layouts)` for `unpack_views`. Each buffer is a one-dimensional `uint8` tensor that is all
# of its storage; `layouts` has one entry per tensor, in order. The rules:
#
# 1. Tensors that reach a common byte share a buffer. So do those that are linked by others:
#    if `a` meets `b` and `b` meets `c`, all three are one **group**. Nothing else shares a buffer,
#    though it may have shared a storage.
# 2. A tensor that is alone in its group, and no two of whose indices reach the same cell, becomes
#    row-major: its buffer holds its elements and nothing else.
# 3. The buffer of any other group holds the bytes from the first to the last that the group
#    reaches, and strides stay as they are. So that all its dtypes can begin where they must, the
#    first byte is moved back to a multiple of the group's largest element size, counted in the
#    storage that it comes from.
#
# Unpacked, all tensors have their shapes, dtypes and elements, and share what they shared before. You
# may call your `overlaps` and your `alias_graph`; then they must be right.
#
# <details><summary>Hint 1: groups</summary>
#
# Begin with each tensor in a group of its own. For each pair of the alias graph with a common byte,
# rename one of the two groups to the other.
#
# </details>
# <details><summary>Hint 2: all bytes of a storage</summary>
#
# `torch.empty(0, dtype=torch.uint8).set_(x.untyped_storage())` is a row of all its bytes. Offsets
# of layouts count elements of the tensor's dtype, from the beginning of the buffer.
#
# </details>
# <details><summary>Hint 3: a copy that is none</summary>
#
# `contiguous()` returns a slice of rows as it is, with the whole storage behind it. `clone()` gives a
# storage of its own, but it keeps dense strides such as those of a transpose. `clone` takes a
# `memory_format`.
#
# </details>


# %% solution="pack_views"
def pack_views(tensors: list[torch.Tensor]) -> tuple[list[torch.Tensor], list[Layout]]:
    """Return (buffers, layouts) from which `unpack_views` makes the tensors again."""
    ### BEGIN SOLUTION
    group = list(range(len(tensors)))
    for (i, j), common in alias_graph(tensors).items():
        if common:
            group = [group[i] if name == group[j] else name for name in group]

    buffers: list[torch.Tensor] = []
    layouts: dict[int, Layout] = {}
    for name in dict.fromkeys(group):
        members = [k for k in range(len(tensors)) if group[k] == name]
        x = tensors[name]  # a group bears the number of one of its members
        if len(members) == 1 and not overlaps(tuple(x.shape), x.stride()):
            # clone() alone would keep the strides of a transpose; contiguous() alone the storage
            x = x.clone(memory_format=torch.contiguous_format)
            layouts[name] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), 0)
            buffers.append(x.view(-1).view(torch.uint8))
            continue
        starts, ends = [], []
        for x in (tensors[k] for k in members):
            last = sum((x.shape[d] - 1) * x.stride(d) for d in range(x.dim()))
            starts.append(x.storage_offset() * x.element_size())
            ends.append((x.storage_offset() + last + 1) * x.element_size())
        widest = max(tensors[k].element_size() for k in members)
        start = min(starts) // widest * widest
        for k in members:
            x = tensors[k]
            offset = x.storage_offset() - start // x.element_size()
            layouts[k] = (len(buffers), x.dtype, tuple(x.shape), x.stride(), offset)
        memory = torch.tensor([], dtype=torch.uint8).set_(x.untyped_storage())
        buffers.append(memory[start : max(ends)].clone())
    return buffers, [layouts[k] for k in range(len(tensors))]
    ### END SOLUTION


# %% grade="pack_views"
grade("pack_views")

# %% [markdown] sitting="in-place"
# question: Can a matrix be turned inside its own memory?
# reached: >-
#   Yes: a transpose is a permutation of cells, and each of its cycles can be walked with one cell
#   in the hand.

# %% [markdown] exercise="transpose_in_place"
# title: Transpose a matrix inside its own memory
# minutes: 60
# difficulty: 5
# points: 6
# prerequisites: [alias_graph]
# teaches: >-
#   that a transpose in row-major order is a permutation of cells, what its cycles are, and how data
#   moves without a second place to put it.
# leaves out: doing it fast, which takes blocks that fit into a cache.
# budget: {file_bytes: 268435456}
# off limits: []

# %% [markdown]
# `x.t()` is a transpose that moves nothing. `x.t().contiguous()` moves everything into a second
# matrix, and for a moment you need twice the memory. What if there is no room for the second?
#
# A square matrix is easy: exchange `x[i, j]` and `x[j, i]`. With 3 rows and 5 columns there is no
# such pair. The result has 5 rows and 3 columns, and lies in the same 15 cells:

# %%
x = torch.arange(15).reshape(3, 5)
y = x.t().contiguous()
print("before", x.view(-1).tolist())
print("after ", y.view(-1).tolist())

# %% [markdown]
# Number 5, the first of the second row, has moved to cell 1. What stood in cell 1 went to cell 3,
# and what stood there went on. Follow them until you come back:

# %%
goes_to = {int(number): cell for cell, number in enumerate(y.view(-1))}
left = set(goes_to)
while left:
    cycle = [min(left)]
    while goes_to[cycle[-1]] != cycle[0]:
        cycle.append(goes_to[cycle[-1]])
    left -= set(cycle)
    print(" -> ".join(map(str, cycle)), "-> back" if len(cycle) > 1 else "stays")

# %% [markdown]
# The whole transpose falls into **cycles**. Lift one number out, move the others of its cycle one
# by one into the cell that has become free, and drop the first one into the last. One number in the
# hand is all the memory it takes. What is left to find out is where each cycle begins, and which
# ones are done.
#
# Look: strides/cells#shape=3x5&ops=transpose.0.1_contiguous&at=1x0 |
# The fifteen numbers before and after: here a second storage takes them in their new order. You are
# to manage with the first.
#
# Element `[i, j]` of $m$ rows and $n$ columns stands in cell $k = i\,n + j$, and must go to cell
# $j\,m + i$. Because $m \cdot (i\,n + j) = i\,(mn - 1) + (j\,m + i)$, that is
#
# $$k \mapsto k\,m \bmod (m\,n - 1)$$
#
# for all cells but the last, which stays.
#
# **Predict.** In a matrix of 2 rows and 4 columns, where does cell 3 go?

# %%
predict(..., lambda: torch.arange(8).view(2, 4).t().reshape(-1).tolist().index(3))

# %% [markdown]
# Why not let `copy_` do it? It looks whether it would read what it has written already, and declines:

# %%
z = torch.arange(6.0).reshape(2, 3)
try:
    z.view(3, 2).copy_(z.t())
except RuntimeError as error:
    print(str(error).split(".")[0])

# %% [markdown]
# **Write `transpose_in_place(x)`.** `x` is a contiguous matrix of shape `(m, n)`, of any dtype, at
# any offset in its storage. Move its elements within the cells that they occupy, and return a
# contiguous tensor of shape `(n, m)`, in the same cells, that holds the transpose. (What `x` itself
# shows afterwards is nobody's concern.) What lies before and behind these cells stays as it is.
#
# While you work you may hold at most **8 KiB** beyond the matrix, in tensors and Python objects
# together, at any one time. We look at a matrix of 40 × 61 `float64`, which takes 19,520 bytes: one
# row fits, a bit or a byte for each cell fits, a Python list with an entry for each cell does not.
#
# <details><summary>Hint 1: one cycle</summary>
#
# Keep the element of the first cell (`clone()`: an indexed element is a view). Compute where it
# goes, keep what stands there, put yours down, and go on with the other.
#
# </details>
# <details><summary>Hint 2: which cycles are done</summary>
#
# Handle each cycle from its smallest cell. To know whether a cell is the smallest, walk along its
# cycle without touching anything: if you meet a smaller one, leave it. That costs time and no memory.
#
# </details>
# <details><summary>Hint 3: the ends</summary>
#
# The first and the last cell stay. A matrix with one row, or with no element at all, has nothing to
# move; see that you never divide by zero.
#
# </details>


# %% solution="transpose_in_place"
def transpose_in_place(x: torch.Tensor) -> torch.Tensor:
    """Return the transpose of x, made in the memory of x.

    x: contiguous, (m, n)
    returns: contiguous, (n, m), in the same cells
    """
    ### BEGIN SOLUTION
    rows, columns = x.shape
    cells = x.view(-1)
    last = rows * columns - 1
    for start in range(1, last):
        # Each cycle is moved once, from its smallest cell. A smaller one ahead: that was done.
        cell = start * rows % last
        while cell > start:
            cell = cell * rows % last
        if cell < start:
            continue
        carried = cells[start].clone()
        cell = start * rows % last
        while cell != start:
            found = cells[cell].clone()
            cells[cell] = carried
            carried = found
            cell = cell * rows % last
        cells[start] = carried
    return x.view(columns, rows)
    ### END SOLUTION


# %% grade="transpose_in_place"
grade("transpose_in_place")

# %% [markdown] sitting="own-tensor"
# question: What is a tensor, then?
# reached: >-
#   A storage, a size, a stride and an offset. You wrote one over a plain list; everything else is
#   arithmetic on the last three.

# %% [markdown] exercise="StridedTensor"
# title: Build a tensor of your own
# minutes: 75
# difficulty: 5
# points: 8
# prerequisites: [view_stride, reshape, broadcast_strides, to_channels_last, overlaps]
# teaches: >-
#   that a tensor is four things, a storage, a size, a stride and an offset, and that indexing,
#   transposing, expanding and viewing are arithmetic on the last three.
# leaves out: indexing with lists and masks, negative steps, sizes of -1, arithmetic, autograd.
# off limits: [torch.as_strided, torch.Tensor.as_strided, torch.empty_strided, torch.Tensor.set_, "aten:set_", "aten:as_strided", "aten:as_strided_", "aten:empty_strided", "aten:new_empty_strided", "import:numpy"]
# forbids: "tensors with strides of your choice; NumPy"

# %% [markdown]
# You know all the parts. Here is the whole: a class that holds a plain Python list of numbers for a
# storage, and a size, a stride and an offset. Everything else computes with these. In C++ it is
# called `TensorImpl`; yours takes about a hundred lines.
#
# Indexing is the heart of it. Each part of an index does one thing to the three numbers, and
# PyTorch does the same things:

# %%
from math import prod

x = torch.arange(60).reshape(3, 4, 5)
for text in ("1", "-1", ":, 2", "1:, ::2", "..., 3:", "None, 2", "2, ..., None, 1", "0, 1:3, -2:"):
    y = eval(f"x[{text}]")
    print(
        f"x[{text:<15}] size {tuple(y.shape)!s:<12} stride {y.stride()!s:<14} offset {y.storage_offset()}"
    )

# %% [markdown]
# | part | size | stride | offset |
# |---|---|---|---|
# | a number $i$ | dimension goes | goes | $+\, i\,s$ |
# | `first:last:step` | as many as there are | times `step` | $+\,$`first`$\,s$ |
# | `None` | a new 1 | any | |
# | `...` | all that the other parts leave over | | |
#
# What is not mentioned at the end stays as it is. Even an index of all dimensions gives a tensor, of
# no dimension: `x[0, 0, 0]` is a view of one cell.
#
# Look: strides/address#shape=4x6&ops=index.1toto2.toto2&at=1x2 | `x[1::2, ::2]` of a 4 × 6: the
# number 1 went into the offset, and both 2 into the strides.
#
# **Predict.** How many dimensions does `x[None, ..., 0, None]` have?

# %%
predict(..., lambda: x[None, ..., 0, None].dim())

# %% [markdown]
# Writing is reading the other way: `x[index] = value` makes the view `x[index]` and writes its cells.
# PyTorch refuses if source and target overlap in part. Yours will do what is meant:

# %%
row = torch.arange(6)
try:
    row[1:] = row[:-1]
except RuntimeError as error:
    print("torch:", str(error).split(".")[0])
numbers = list(range(6))
numbers[1:] = numbers[:-1]
print("meant:", numbers)

# %% [markdown]
# **Write the class `StridedTensor`.** What it has:
#
# - `StridedTensor(storage, size, stride, offset=0)`, and attributes of these four names. `storage` is
#   a list of numbers that is kept as it is, never copied; `size` and `stride` are tuples of equal
#   length.
# - `tolist()`: nested lists, as of a torch tensor; of no dimension, the number itself. `item()`: the
#   number of a tensor of no dimension.
# - `x[index]`: always a view, that is a `StridedTensor` on the same list. `index` is one part or a
#   tuple of parts: whole numbers (negative ones count from the end), slices with positive steps,
#   `None`, and at most one `...`. Too many parts and a number out of range raise an `IndexError`; a
#   step below 1 raises a `ValueError`.
# - `x[index] = value`: `value` is a number, or a `StridedTensor` that is expanded to the size of
#   `x[index]`. All of it is read before the first cell is written.
# - `x.transpose(a, b)`: exchanges two dimensions; negative ones count from the end.
# - `x.expand(*size)`: a view of that size, as in torch: dimensions of size 1 are repeated, new ones
#   appear in front. Where that is impossible, a `ValueError`.
# - `x.view(*size)`: the same elements in row-major order under another size, as a view; a
#   `ValueError` if no strides can do it, or if the number of elements differs.
# - `x.reshape(*size)`: a view if there is one, and a copy with a new list if not. A `ValueError` if the
#   number of elements differs.
#
# Where a size is 1, or the tensor is empty, we do not look at strides, and of an empty one not at the
# offset. PyTorch may help you to check; its own strided views are off limits.
#
# <details><summary>Hint 1: slices</summary>
#
# `part.indices(n)` of a Python slice gives first, last and step for a dimension of size `n`, with
# everything negative, missing or too large put right. `len(range(...))` counts.
#
# </details>
# <details><summary>Hint 2: views</summary>
#
# Merge neighbouring dimensions into runs: two are one if the outer stride is the inner stride times
# the inner size. Each run is a row with one step. Fill the new sizes from the last one on: each must
# divide what is left of its run. A size of 1 is no obstacle anywhere.
#
# </details>
# <details><summary>Hint 3: one list of cells</summary>
#
# A method that returns the storage positions of all elements in row-major order serves writing,
# copying and reading. It begins with `[offset]`, and each dimension turns each position into `n`.
#
# </details>


# %% solution="StridedTensor"
Part = int | slice | None | type(Ellipsis)


class StridedTensor:
    """A tensor over a list: element [i, j] is storage[offset + i * stride[0] + j * stride[1]]."""

    def __init__(
        self, storage: list, size: tuple[int, ...], stride: tuple[int, ...], offset: int = 0
    ) -> None:
        ### BEGIN SOLUTION
        self.storage, self.offset = storage, offset
        self.size, self.stride = tuple(size), tuple(stride)

    def cells(self) -> list[int]:
        """Return where the elements are in the storage, in row-major order."""
        cells = [self.offset]
        for dim in range(len(self.size)):
            steps = [i * self.stride[dim] for i in range(self.size[dim])]
            cells = [cell + step for cell in cells for step in steps]
        return cells

    def item(self) -> float:
        """Return the number of a tensor without dimensions."""
        return self.storage[self.offset]

    def tolist(self) -> float | list:
        """Return nested lists."""
        return [self[i].tolist() for i in range(self.size[0])] if self.size else self.item()

    def __getitem__(self, index: Part | tuple[Part, ...]) -> "StridedTensor":
        """Return a view. Each part of the index changes size, stride and offset."""
        index = index if isinstance(index, tuple) else (index,)
        left = len(self.size) - sum(part is not None and part is not ... for part in index)
        if left < 0:
            raise IndexError("too many indices")
        if ... not in index:
            index = (*index, ...)
        size, stride, offset, dim = [], [], self.offset, 0
        for part in index:
            if part is ...:
                size += self.size[dim : dim + left]
                stride += self.stride[dim : dim + left]
                dim += left
                continue
            if part is None:
                size.append(1)
                stride.append(0)
                continue
            step, n = self.stride[dim], self.size[dim]
            if isinstance(part, slice):
                taken = range(n)[part]
                if taken.step < 1:
                    raise ValueError("a step must be positive")
                size.append(len(taken))
                stride.append(taken.step * step)
                offset += taken.start * step
            else:
                offset += range(n)[part] * step  # raises IndexError, as it should
            dim += 1
        return StridedTensor(self.storage, size, stride, offset)

    def __setitem__(self, index: Part | tuple[Part, ...], value: "float | StridedTensor") -> None:
        """Write through a view."""
        target = self[index]
        numbers = [value] * prod(target.size)
        if isinstance(value, StridedTensor):
            source = value.expand(*target.size)
            numbers = [value.storage[cell] for cell in source.cells()]
        for cell, number in zip(target.cells(), numbers):  # noqa: B905
            self.storage[cell] = number

    def transpose(self, a: int, b: int) -> "StridedTensor":
        """Exchange two dimensions."""
        order = list(range(len(self.size)))
        order[a], order[b] = order[b], order[a]
        size, stride = [self.size[d] for d in order], [self.stride[d] for d in order]
        return StridedTensor(self.storage, size, stride, self.offset)

    def expand(self, *size: int) -> "StridedTensor":
        """Repeat dimensions of size 1, and add new ones in front: their stride is 0."""
        new = len(size) - len(self.size)
        if new < 0:
            raise ValueError("there are more dimensions than that")
        stride = [0] * new
        for dim in range(len(self.size)):
            if self.size[dim] not in (1, size[new + dim]):
                raise ValueError("only a size of 1 can be expanded")
            stride.append(0 if self.size[dim] == 1 else self.stride[dim])
        return StridedTensor(self.storage, size, stride, self.offset)

    def view(self, *size: int) -> "StridedTensor":
        """Look at the elements under another size, if strides can do it."""
        if prod(size) != prod(self.size):
            raise ValueError("the number of elements is another")
        if 0 in size:
            return StridedTensor(self.storage, size, [0] * len(size), self.offset)
        runs = []  # of equal steps, as long as can be
        for dim in range(len(self.size)):
            n, step = self.size[dim], self.stride[dim]
            if n == 1:
                continue
            if runs and runs[-1][1] == n * step:
                n *= runs.pop()[0]
            runs.append((n, step))
        stride, room, step = [], 1, 0
        for n in reversed(size):
            if room == 1 and n > 1:
                room, step = runs.pop()
            if room % n:
                raise ValueError("no strides can do that")
            stride.append(step)
            room, step = room // n, step * n
        return StridedTensor(self.storage, size, stride[::-1], self.offset)

    def reshape(self, *size: int) -> "StridedTensor":
        """Look at the elements under another size, or copy them."""
        try:
            return self.view(*size)
        except ValueError:
            numbers = [self.storage[cell] for cell in self.cells()]
            return StridedTensor(numbers, [len(numbers)], [1]).view(*size)

    ### END SOLUTION


# %% grade="StridedTensor"
grade("StridedTensor")
