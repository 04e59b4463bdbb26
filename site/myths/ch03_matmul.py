# Matrix products: claims, what is true, and programs that show it.

# %% matmul-ranks matmul_shape
# `matmul` takes tensors of one to four dims.
#
# Any number from one on. The leading dims broadcast.
a, b = torch.zeros(2, 1, 3, 1, 5, 6), torch.zeros(7, 1, 4, 6, 2)
print((a @ b).shape)
try:
    torch.tensor(2.0) @ torch.ones(2)
except RuntimeError as error:
    print(error)

# %% mm-beats-matmul matmul
# `mm` is faster than `matmul` for matrices.
#
# For two matrices both are the same one operation.
from grader import watch_ops

a, b = torch.zeros(8, 8), torch.zeros(8, 8)
for product in (torch.mm, torch.matmul):
    with watch_ops() as ops:
        product(a, b)
    print(ops.names)

# %% batches-need-bmm matmul
# Batches of matrices need `bmm`.
#
# `matmul` calls it for you. Where the right side is one matrix, and the left lies in memory batch by batch, it does better: one `mm` for all.
from grader import watch_ops

for b in (torch.zeros(8, 5, 3), torch.zeros(5, 3)):
    with watch_ops() as ops:
        torch.zeros(8, 4, 5) @ b
    print([name for name in ops.names if name in ("mm", "bmm", "clone")])

# %% broadcast-is-free broadcast_matmul
# Broadcasting in a product costs nothing, as everywhere.
#
# `bmm` has one batch dim. Two broadcast ones cannot be merged in place, so `matmul` first writes both operands out.
from grader import watch_ops

with watch_ops() as ops:
    torch.zeros(2, 1, 4, 5) @ torch.zeros(1, 8, 5, 3)
print(ops.count("clone"), "copies")

# %% bmm-broadcasts broadcast_matmul
# `bmm` broadcasts a batch of one.
#
# It does not broadcast at all.
try:
    torch.bmm(torch.zeros(8, 4, 5), torch.zeros(1, 5, 3))
except RuntimeError as error:
    print(error)

# %% einsum-is-an-engine einsum
# `einsum` is an engine of its own, slower than products.
#
# It permutes, reshapes and calls `bmm`. Where nothing is summed it multiplies.
from grader import watch_ops

a, b = torch.zeros(2, 3), torch.zeros(3, 4)
with watch_ops() as ops:
    torch.einsum("ij,jk->ik", a, b)
    torch.einsum("i,j->ij", a[0], b[0])
print([name for name in ops.names if name in ("mm", "bmm", "mul")])

# %% dimensions-have-names einsum
# A tensor's dimensions can have names.
#
# They could, from 1.3 to 2.12, as an experiment. What is left is names for the length of a call: the letters of `einsum`.
try:
    torch.zeros(2, 3, names=("batch", "time"))
except TypeError as error:
    print(str(error).splitlines()[0])
print(torch.einsum("bt->tb", torch.zeros(2, 3)).shape)

# %% dot-is-numpy-dot matmul_shape
# `torch.dot` is NumPy's `dot`.
#
# It takes two vectors, nothing else, and returns a tensor of no dims.
print(torch.dot(torch.ones(3), torch.ones(3)))
try:
    torch.dot(torch.ones(2, 2), torch.ones(2, 2))
except RuntimeError as error:
    print(error)

# %% n-by-one-is-a-vector a-vector-or-a-column
# Predictions of shape (n, 1) and targets of shape (n,) are the same to a loss.
#
# They broadcast to n by n. The loss of perfect predictions is not 0, and a warning is all you hear.
target = torch.tensor([1.0, 2.0, 3.0, 4.0])
loss = torch.nn.functional.mse_loss
print(loss(target[:, None], target).item(), loss(target, target).item())

# %% conv-kernels conv2d
# A convolution from 8 to 16 channels has 8 · 16 kernels.
#
# Divided by the groups: the weight is (out, in / groups, height, width).
conv = torch.nn.Conv2d(8, 16, 3, groups=4)
print(tuple(conv.weight.shape), conv.weight.shape[0] * conv.weight.shape[1])

# %% conv-flips conv2d
# `conv2d` convolves.
#
# It slides the kernel as it is, which mathematicians call correlation. A convolution would turn it round.
image = torch.zeros(1, 1, 1, 5)
image[..., 2] = 1
kernel = torch.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 1, 3)
print(torch.nn.functional.conv2d(image, kernel).flatten().tolist())

# %% one-by-one-conv linear_as_conv
# A 1×1 convolution in place of a linear layer loses the view of the whole.
#
# On an image of one pixel it is the same sum over all features.
weight, x = torch.arange(6.0).reshape(2, 3), torch.tensor([[1.0, 2.0, 4.0]])
conv = torch.nn.functional.conv2d(x[:, :, None, None], weight[:, :, None, None])
print((x @ weight.t()).tolist(), conv.flatten(1).tolist())

# %% linear-gives-probabilities from-words-to-numbers-the-shapes-of-bert
# The last linear layer gives the probabilities of the words.
#
# It gives logits: any numbers. `softmax` makes probabilities, and `cross_entropy` wants the logits.
torch.manual_seed(0)
y = torch.nn.Linear(8, 11)(torch.ones(8))
print(bool((y < 0).any()), round(y.softmax(0).sum().item(), 4))
