# Strides and views: claims, what is true, and programs that show it.

# %% view-needs-contiguous view_stride
# `view` only works on contiguous tensors.
#
# It needs less: dims that are merged must follow each other in memory. Splitting a dim always works.
x = torch.arange(24).reshape(4, 6).t()
y = x.view(2, 3, 2, 2)
print(x.is_contiguous(), y.shape, y.stride())
print(torch.arange(20)[::2].view(2, 5).stride())

# %% several-blocks
# A non-contiguous tensor lies in several blocks of memory.
#
# Every strided tensor has one storage, in one piece. What differs is the order in which it is read.
x = torch.arange(6).reshape(2, 3)
y = x.t()
same = x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
print(same, y.untyped_storage().nbytes(), "bytes, strides", y.stride())

# %% strided-means-gaps
# The layout `torch.strided` means that elements have gaps between them.
#
# It is the name of the ordinary layout, as opposed to sparse ones. A new tensor has it, without a gap.
x = torch.zeros(2, 3, 4)
print(x.layout, x.stride(), x.is_contiguous())

# %% contiguous-copies is_view
# `contiguous()` copies.
#
# Only if it must. A contiguous tensor is returned as it is: the same object.
x = torch.zeros(2, 3)
print(x.contiguous() is x, x.t().contiguous().data_ptr() == x.data_ptr())

# %% transpose-breaks-contiguity is_contiguous
# After a transpose or permute a tensor is not contiguous.
#
# Dims of size 1, empty tensors and a second transpose keep it so. On a channels-last image, `permute` even makes it contiguous.
print(torch.zeros(1, 5).t().is_contiguous(), torch.zeros(0, 3).t().is_contiguous())
image = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
print(image.is_contiguous(), image.permute(0, 2, 3, 1).is_contiguous())

# %% reshape-is-contiguous reshape
# `reshape` gives a contiguous tensor.
#
# It gives a view where one is possible, with whatever strides that view has.
x = torch.arange(6).reshape(2, 3).t()
y = x.reshape(3, 1, 2)
print(y.is_contiguous(), y.stride(), y.data_ptr() == x.data_ptr())

# %% reshape-never-copies reshape
# `reshape` only changes the shape, the data stay where they are.
#
# Where no view exists it copies, and what you write goes into the copy.
x = torch.zeros(2, 3)
x.t().reshape(-1)[0] = 99
print(x[0, 0].item())
x.reshape(-1)[0] = 99
print(x[0, 0].item())

# %% reshape-is-contiguous-view reshape
# On a non-contiguous tensor, `reshape` is `contiguous().view()`.
#
# The values agree. The memory does not: `reshape` tries a view first.
x = torch.arange(12).reshape(3, 4).t()
for y in (x.reshape(2, 2, 3), x.contiguous().view(2, 2, 3)):
    print(y.data_ptr() == x.data_ptr())

# %% reshape-transposes view_of
# To swap two dims, `reshape` to the swapped shape.
#
# `reshape` keeps the order in which elements are read. Swapping is what `transpose` does.
x = torch.arange(6).reshape(2, 3)
print(x.reshape(3, 2).tolist(), x.transpose(0, 1).tolist())

# %% flatten-copies is_view
# `ravel` may return a view, `flatten` copies. As in NumPy.
#
# Not as in NumPy: here `flatten` copies only where no view exists. `ravel` copies whatever is not contiguous.
x, steps = torch.zeros(2, 3), torch.zeros(10)[::2]
for y in (x, steps):
    print(y.flatten().data_ptr() == y.data_ptr(), y.ravel().data_ptr() == y.data_ptr())

# %% expand-size-one broadcast_strides
# `expand` only stretches dims of size 1.
#
# It also adds new ones in front, with stride 0.
y = torch.arange(3).expand(4, 3)
print(y.shape, y.stride())

# %% chunk-count
# `chunk(n)` gives n pieces of the same size.
#
# It gives pieces of size ceil(length / n), the last one perhaps shorter, and as many as that makes. `tensor_split` gives n.
x = torch.arange(5)
print([len(piece) for piece in x.chunk(4)], [len(piece) for piece in x.tensor_split(4)])

# %% same-data-ptr share_memory
# Two tensors share memory if their `data_ptr()` are equal.
#
# `data_ptr` is where a tensor begins to read. Two views of one storage begin at different places, and may still overlap.
x = torch.arange(5)
a, b = x[:4], x[1:]
print(a.data_ptr() == b.data_ptr())
print(a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr())

# %% as-tensor-shares
# `as_tensor` shares memory with what it is given.
#
# With tensors and arrays of the right dtype and device. A list is copied, and so is what changes its dtype.
import numpy

values, x, array = [1.0, 2.0], torch.zeros(2), numpy.zeros(2)
torch.as_tensor(values)[0] = 9
torch.as_tensor(x, dtype=torch.float64)[0] = 9
torch.as_tensor(array)[0] = 9
print(values, x.tolist(), torch.as_tensor(x) is x, array.tolist())

# %% not-contiguous-means-scattered dense_stride
# Contiguous means without gaps.
#
# It means row-major, too. A transposed tensor fills its memory to the last cell, and is not contiguous.
x = torch.zeros(3, 4).t()
cells = {i * x.stride(0) + j * x.stride(1) for i in range(4) for j in range(3)}
print(sorted(cells) == list(range(12)), x.is_contiguous())

# %% ops-need-contiguous do-operations-need-contiguous-inputs
# Kernels need contiguous inputs; call `.contiguous()` before you multiply.
#
# A product takes transposed operands as they are. The call you add is the only copy.
from grader import watch_ops  # lists the ATen operators that run

a, b = torch.zeros(32, 64), torch.zeros(16, 32)
with watch_ops() as plain:
    a.t() @ b.t()
with watch_ops() as careful:
    a.t().contiguous() @ b.t().contiguous()
print(plain.count("clone"), careful.count("clone"))

# %% pointers-to-pointers read_element
# A matrix is an array of pointers to rows, as in C.
#
# One pointer, and a sum of index times stride. Any order of dims is as good as any other.
import ctypes

x = torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)
steps = 3 * x.stride(0) + 1 * x.stride(1) + 2 * x.stride(2)
address = x.data_ptr() + x.element_size() * steps
print(ctypes.c_float.from_address(address).value, x[3, 1, 2].item())

# %% Tensor-and-tensor creation-copy-or-share
# `torch.Tensor` and `torch.tensor` are the same.
#
# The first is a class: a number is a size, and the dtype is the default float. The second is a function that takes data.
print(torch.Tensor(3).shape, torch.tensor(3).shape)
print(torch.Tensor([1, 2]).dtype, torch.tensor([1, 2]).dtype)

# %% three-indices-for-three-dims index_view
# A tensor of three dims takes at most three indices.
#
# At most three that use one up. `None` uses up none, and `...` stands for all that are left, if any.
x = torch.zeros(2, 3, 4)
print(x[None, 0, ..., None, 1].shape, x[0, 1, ..., 2].shape)

# %% four-dims-ncwh
# A tensor is a four-dimensional array, batch by channels by width by height.
#
# Any number of dims, none included. And PyTorch's images have height before width.
image = torch.zeros(1, 1, 4, 10)  # four rows of ten
print(torch.nn.functional.conv2d(image, torch.zeros(1, 1, 1, 3)).shape)
print(torch.tensor(1.0).dim())

# %% overlap-is-refused overlaps
# PyTorch refuses in-place operations on tensors that overlap themselves.
#
# It refuses stride 0. Windows that overlap go through, and cells are added to several times.
x = torch.zeros(6)
x.unfold(0, 3, 1).add_(1)
print(x.tolist())
try:
    torch.zeros(3).expand(4, 3).add_(1)
except RuntimeError as error:
    print(str(error).split(".")[0])

# %% a-slice-saves-small pack_views
# Saving a slice saves the slice.
#
# It saves the storage that the slice reads from. Clone first.
import io


def saved_bytes(x):
    file = io.BytesIO()
    torch.save(x, file)
    return len(file.getvalue())


x = torch.zeros(100_000)
print(saved_bytes(x[:10]) > 400_000, saved_bytes(x[:10].clone()) < 4_000)
