# Shapes, views and memory: questions, answers, and programs that show them.

# %% what-is-a-stride
# What is the stride of a tensor?
#
# A tensor's elements lie in one row of memory, its storage. A stride says for each dim how many elements further the next index lies: `x[i, j]` is element `offset + i * stride[0] + j * stride[1]`. A new tensor (3, 4) has strides (4, 1), so the next row is four elements further, the next column one.
#
# That is why `t()`, slices, `expand` and `view` cost nothing. They make another tensor over the same storage, with sizes, strides and an offset of its own. Transposing exchanges two strides, `x[::2]` doubles one, `expand` sets one to 0: the same elements are read again and again.
#
# Strides count elements, not bytes as in NumPy. They are never negative: `x[::-1]` raises, and `flip` copies.
#
# Look: strides/cells#shape=3x4&ops=transpose.0.1&at=2x1 | A transposed tensor: the strides were exchanged, and the storage is as it was.
#
# Go on: ch02_strides#read_element, ch02_strides#dense_stride, ch02_strides#broadcast_strides
import torch

x = torch.arange(12).view(3, 4)
tensors = {
    "x": x,
    "x.t()": x.t(),
    "x[::2]": x[::2],
    "x[:, 1:]": x[:, 1:],
    "expand": x[:1].expand(3, 4),
    "flip": x.flip(0),
}
for name, v in tensors.items():
    same = v.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    where = f"stride {v.stride()}, offset {v.storage_offset()}"
    print(f"{name:8} {where}, same storage: {same}")
print("NumPy counts bytes:", x.numpy().strides)
try:
    x[::-1]
except ValueError as error:
    print(error)

# %% view-or-reshape
# Should I use view or reshape?
#
# Use `reshape` when you only want the shape. Use `view` when you rely on the result sharing memory: `view` never copies and raises where it would have to, `reshape` returns the same view where one is possible and silently copies where none is.
#
# That matters when you write into the result. Written into a view, the original changes; written into a copy, it does not.
#
# `view` does not need a contiguous tensor, as is often said. It needs that dims which are merged follow each other in memory. Splitting a dim is always possible.
#
# Look: strides/view#shape=3x4&ops=transpose.0.1&at=2x1&target=12 | The storage of a transposed tensor. Its rows can no longer be merged into one, and the explorer names the strides that forbid it.
#
# Go on: ch02_strides#view_stride, ch02_strides#reshape, myths#view-needs-contiguous
import torch

x = torch.zeros(2, 3)
x.view(6)[0] = 1
x.reshape(6)[1] = 2
print(x[0].tolist(), "both wrote into x")

t = x.t()
t.reshape(6)[2] = 3
print(3 in x, "reshape had copied")
try:
    t.view(6)
except RuntimeError as error:
    print(str(error)[:45])
print(t.view(3, 2, 1).shape, "t is not contiguous:", t.is_contiguous())

# %% view-size-is-not-compatible
# What does "view size is not compatible with input tensor's size and stride" mean?
#
# You asked for a shape that merges two dims, and these dims do not follow each other in memory: the stride of the outer one is not the inner one's size times its stride. No strides can describe the result, so a view is impossible. Usually a `transpose`, `permute`, `expand` or a slice came before.
#
# Three ways out. `reshape` copies if it must. `.contiguous().view(...)` copies, too, and says so. Or do the `view` before the `permute`, which often needs no copy at all.
#
# Check that you want it: merging dims after a `transpose` gives elements in another order than before it.
#
# Look: strides/view#shape=2x3x4&ops=transpose.1.2&at=1x2x1&target=2x12 | Two dims were swapped. The explorer says which pair of dims cannot be merged, with its numbers.
#
# Go on: ch02_strides#view_stride, ch02_strides#reshape, myths#reshape-transposes
import torch

x = torch.arange(24).reshape(2, 3, 4)
t = x.transpose(1, 2)
print(t.shape, t.stride())
print(f"{t.stride(1)} should be {t.size(2)} * {t.stride(2)}")
try:
    t.view(2, 12)
except RuntimeError as error:
    print(str(error)[:68])
print(t.reshape(2, 12)[0].tolist())
print(x.view(2, 12)[0].tolist())

# %% when-contiguous
# When do I need contiguous()?
#
# Rarely. Nearly every operation takes tensors of any strides, and gives the right values. You need it in front of a `view` that would have to merge dims that are apart, for code that reads raw memory (a C extension, `data_ptr`), and where one copy now makes many later reads faster.
#
# It costs a copy of all elements, unless the tensor is contiguous already: then you get the very same object back.
#
# `permute` and `transpose` copy nothing. They only change sizes and strides.
#
# Look: strides/cells#shape=3x4&ops=permute.1.0_contiguous&at=2x1 | A permuted tensor, then contiguous: the second has cells of its own. Step back to see the first.
#
# Go on: ch02_strides#is_contiguous, ch02_strides#do-operations-need-contiguous-inputs, myths#ops-need-contiguous
import torch

x = torch.arange(12.0).reshape(3, 4)
t = x.t()
print(x.contiguous() is x)
copy = t.contiguous()
print(t.stride(), copy.stride(), copy.data_ptr() == x.data_ptr())
print(torch.equal(t @ x, copy @ x), torch.equal(t.sum(0), copy.sum(0)))

# %% expand-or-repeat
# expand or repeat?
#
# `expand` gives a view: a stretched dim gets stride 0, so every copy you see is one element in memory. `repeat` allocates and writes everything. Use `expand` to read; most often broadcasting does it for you and you need neither.
#
# Do not write into an expanded tensor. One element stands for many, and PyTorch refuses most in-place operations on it. Then use `repeat`, or `expand(...).clone()`.
#
# `expand` can only stretch dims of size 1, or add new ones in front. `repeat(2)` on a tensor of size 3 gives size 6. To repeat each element in place, take `repeat_interleave`.
#
# Look: strides/cells#shape=1x4&ops=expand.3.4&at=2x1 | Three rows, four cells, and a stride of 0.
#
# Go on: ch02_strides#broadcast_strides, ch02_strides#overlaps, myths#expand-size-one
import torch

x = torch.arange(4.0).reshape(1, 4)
wide, copied = x.expand(1000, 4), x.repeat(1000, 1)
print(wide.stride(), wide.untyped_storage().nbytes(), "bytes")
print(copied.stride(), copied.untyped_storage().nbytes(), "bytes")
print(torch.equal(wide, copied))
try:
    wide.add_(1)
except RuntimeError as error:
    print(str(error).partition(".")[0])

# %% permute-or-reshape
# Why does reshape scramble my image instead of transposing it?
#
# `reshape` keeps the elements in the order in which they are read and only puts the row breaks elsewhere. To swap dims, as from height, width, channels to channels, height, width, take `permute` (or `transpose` for two of them).
#
# The shapes that come out are the same, so nothing complains, and a network trains on the scrambled image, only worse.
#
# A quick test: give each channel one constant value and look whether it stays together.
#
# Look: strides/cells#shape=2x3&ops=permute.1.0&at=2x0 | After a permute each element still reads its own cell: the strides were swapped along with the sizes.
#
# Go on: ch02_strides#view_of, myths#reshape-transposes
import torch

image = torch.tensor([10, 20, 30]).expand(2, 2, 3)  # height, width, channels
right, wrong = image.permute(2, 0, 1), image.reshape(3, 2, 2)
print(right.shape == wrong.shape)
print("permute, channel 0:", right[0].tolist())
print("reshape, channel 0:", wrong[0].tolist())

# %% does-slicing-copy
# Does slicing or indexing a tensor copy it?
#
# Basic indexing gives views: integers, slices, `None` and `...`. Advanced indexing copies: a list, a tensor of indices or a mask of booleans. Strides can describe "every second row", but not "rows 0, 2 and 3".
#
# So `x[0][1] = 5` writes into `x`, while `x[[0]][0] = 5` writes into a copy that is thrown away. `x[[0]] = 5`, with one pair of brackets and an assignment, does write: it calls `index_put_` on `x`.
#
# A slice keeps the whole storage alive. Clone it if it is to outlive a large tensor.
#
# Look: strides/cells#shape=4x3&stride=6x1&at=2x1 | Every second row: a stride of 6 skips the rows in between.
#
# Go on: ch02_strides#index_view, ch02_strides#indexing-what-counts-as-an-index, myths#a-slice-saves-small
import torch

x = torch.zeros(4, 3)


def shares(y):
    return y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


print("slices:", shares(x[1:3]), shares(x[:, 0]), shares(x[..., None, ::2]))
print("list, mask:", shares(x[[0, 2]]), shares(x[x == 0]))
print("tensor:", shares(x[torch.tensor([1])]))
x[[0]][0] = 5
print(x.sum().item())
x[[0]] = 5
print(x.sum().item())

# %% clone-or-detach
# clone, detach or clone().detach(): which one copies?
#
# `clone` copies the data and stays in the graph: gradients flow back through it. `detach` copies nothing: it is the same memory, out of the graph. For an independent copy without history write `x.detach().clone()`, in this order, so that the copy is not recorded.
#
# The trap is `detach` alone. What you write into it in place changes the original, and may spoil a gradient; autograd notices that through the version counter and raises at `backward`.
#
# `torch.tensor(x)` on a tensor does the same as `x.detach().clone()`, with a warning.
#
# Look: autograd/tensors#code=x = torch.tensor([1., 2.], requires_grad=True);y = x * 2;d = y.detach();d.mul_(10) | What detach gives shares its memory with y, so y is ten times as large after the last line.
#
# Go on: ch05_autograd#route, myths#detach-copies, myths#clone-is-independent
import torch

x = torch.ones(2, requires_grad=True)
y = x * 2
for name, z in [
    ("clone", y.clone()),
    ("detach", y.detach()),
    ("both", y.detach().clone()),
]:
    same = z.data_ptr() == y.data_ptr()
    print(f"{name:7} in the graph: {z.requires_grad!s:6} same memory: {same}")
y.clone().sum().backward()
print(x.grad.tolist())

# %% from-numpy-shares-memory
# Does torch.from_numpy share memory?
#
# Yes. `from_numpy` and `Tensor.numpy()` on a CPU tensor use the same bytes in both directions; `torch.tensor(array)` always copies. `as_tensor` shares if dtype and device already fit, and copies otherwise.
#
# So an array that a library reuses for the next frame changes under your tensor. Copy it once: `torch.tensor(array)`, or `from_numpy(array).clone()`.
#
# Two limits. PyTorch has no negative strides, so an array flipped with `[::-1]` is refused until you copy it. And NumPy makes `float64` where PyTorch makes `float32`: `from_numpy` keeps the array's dtype.
#
# Go on: ch02_strides#creation-copy-or-share, myths#as-tensor-shares
import numpy
import torch

array = numpy.zeros(3)
shared, copied = torch.from_numpy(array), torch.tensor(array)
array[0] = 7
print(shared.tolist(), copied.tolist(), shared.dtype)
shared[1] = 8
print(array)
try:
    torch.from_numpy(array[::-1])
except ValueError as error:
    print(str(error).partition(".")[0])

# %% channels-last
# What does channels_last change?
#
# The order in memory, nothing else. Shape, indices and values stay: `x[n, c, h, w]` means the same, `x.shape` is still N, C, H, W. The strides say that the channels of one pixel lie side by side, which is what many convolution kernels like to read.
#
# It is no permute. `x.to(memory_format=torch.channels_last)` copies the data into the other order; `x.permute(0, 2, 3, 1)` renames the dims and copies nothing.
#
# Convert model and input once. Convolutions hand the format on. An operation that makes a tensor contiguous in the usual order loses it.
#
# Look: strides/cells#shape=1x3x2x4&ops=channels-last&at=0x1x1x2 | The same sizes, a stride of 1 for the channels.
#
# Go on: ch02_strides#to_channels_last, ch02_strides#is_contiguous
import torch
from torch import nn

x = torch.arange(24.0).reshape(1, 3, 2, 4)
y = x.to(memory_format=torch.channels_last)
print(x.shape == y.shape, torch.equal(x, y))
print(x.stride(), y.stride())
print(y.is_contiguous(), y.permute(0, 2, 3, 1).is_contiguous())
conv = nn.Conv2d(3, 5, 1).to(memory_format=torch.channels_last)
print(conv(y).is_contiguous(memory_format=torch.channels_last))
