# Products, einsum and attention: questions, answers, and programs that show them.

# %% is-einsum-slow
# Is einsum slower than matmul?
#
# It is no engine of its own. `einsum` permutes and reshapes its operands, calls `bmm`, and permutes back; for two operands that is what you would write by hand. On large tensors the product dominates and there is no difference to measure.
#
# It costs more in two cases. A permutation that `bmm` cannot read in place is copied first, so an unlucky order of letters moves more bytes. And with three or more operands the order counts: PyTorch goes from left to right, unless the package `opt_einsum` is installed. Then it asks that for a better one.
#
# Look: matmul/runs#eq=bqhd,bkhd->bhqk&a=2x128x8x64&b=2x128x8x64 | Attention scores: the explorer shows which kernel runs and what is copied for it.
#
# Go on: ch03_matmul#einsum, ch03_matmul#best_order, myths#einsum-is-an-engine
import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Listing(TorchDispatchMode):
    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        print(" ", op.__name__.split(".")[0], end="")
        return op(*args, **(kwargs or {}))


a, b = torch.ones(2, 3, 4), torch.ones(2, 4, 5)
for text, run in [
    ("einsum:", lambda: torch.einsum("bij,bjk->bik", a, b)),
    ("@:     ", lambda: a @ b),
]:
    print(text, end="")
    with Listing():
        run()
    print()
print(torch.equal(torch.einsum("bij,bjk->bik", a, b), a @ b))

# %% matmul-broadcasting
# How does matmul broadcast?
#
# The last two dims are the matrices, and are multiplied: the last of the first against the second last of the second. All dims before them are batch, and broadcast like those of any operation: aligned at the right, equal, or one of them 1, or missing.
#
# A vector is the exception. On the left it becomes a row, on the right a column, and its dim is gone from the result. So `(3, 4) @ (4,)` is `(3,)`, and a batch of vectors `(8, 4)` on the right of `(8, 3, 4)` does not fit: write `(a @ v[..., None])[..., 0]`.
#
# A batch that broadcasts may be copied for `bmm`. A weight that is shared by a whole batch costs no copy: `(8, 3, 4) @ (4, 5)` becomes one product.
#
# Look: matmul/runs#a=2x1x3x4&b=1x5x4x2 | Batch dims 2×1 and 1×5 make 2×5. What is copied for that stands below.
#
# Go on: ch03_matmul#matmul_shape, ch03_matmul#broadcast_matmul, myths#broadcast-is-free
import torch

for left, right in [
    ((2, 1, 3, 4), (5, 4, 2)),
    ((3, 4), (4,)),
    ((8, 3, 4), (4,)),
    ((8, 3, 4), (8, 4)),
    ((4,), (8, 4, 5)),
]:
    try:
        shape = tuple((torch.ones(left) @ torch.ones(right)).shape)
    except RuntimeError as error:
        shape = str(error)
    print(left, "@", right, "=", shape)
a, v = torch.ones(8, 3, 4), torch.ones(8, 4)
print((a @ v[..., None])[..., 0].shape)

# %% mat1-and-mat2-shapes-cannot-be-multiplied
# What does "mat1 and mat2 shapes cannot be multiplied" mean?
#
# The inner dims differ. The message shows both matrices after all batch dims were folded into one: `(32x400 and 120x10)` means that 400 features came where the layer takes 120.
#
# In a network it is nearly always the first `Linear` after convolutions. Its `in_features` must be channels × height × width of what arrives. Flatten with `torch.flatten(x, 1)`, which keeps the batch, print the shape once, or let `nn.LazyLinear` fill it in at the first call.
#
# Another image size changes the number. Pool to a fixed size first (`nn.AdaptiveAvgPool2d`), and it does not.
#
# The second matrix of a `Linear` is its weight transposed: mat2 is (in, out).
#
# Look: matmul/dims#a=2x3x4&b=3x4x5 | Here the batches do not fit; step the shapes until they do.
#
# Go on: ch03_matmul#matmul_shape, ch03_matmul#linear_as_conv
import torch
from torch import nn

features = nn.Sequential(nn.Conv2d(3, 16, 5), nn.ReLU(), nn.MaxPool2d(2))
x = torch.ones(32, 3, 14, 14)
try:
    nn.Linear(120, 10)(features(x).flatten(1))
except RuntimeError as error:
    print(error)
print(
    tuple(features(x).shape),
    "so in_features =",
    features(x).flatten(1).shape[1],
)
pooled = nn.Sequential(
    features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)
)
print(pooled(x).shape, pooled(torch.ones(1, 3, 40, 60)).shape)

# %% mm-bmm-or-matmul
# mm, bmm, matmul, dot or @: which one?
#
# `@` and `matmul` are the same and take every shape: vectors, matrices, batches, with broadcasting. They call the others. Use `@`.
#
# The others are strict, which makes them assertions: `mm` takes two matrices, `bmm` two batches of matrices with equal batch sizes and without broadcasting, `mv` a matrix and a vector, `dot` two vectors. None is faster; `matmul` gets to the same kernel.
#
# `*` multiplies element by element. Torch's `dot` is not NumPy's: for matrices it raises.
#
# `addmm` and `baddbmm` add to the result in the same kernel. `nn.Linear` uses the first for its bias.
#
# Look: matmul/runs#a=8x16x32&b=32x24 | A batch times one matrix: matmul folds the batch and calls one mm.
#
# Go on: ch03_matmul#matmul, ch03_matmul#the-family, myths#mm-beats-matmul, myths#bmm-broadcasts
import torch
from torch.profiler import ProfilerActivity, profile

KERNELS = {"aten::mm", "aten::bmm", "aten::mv", "aten::dot", "aten::addmm"}
for left, right in [
    ((3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (4,)),
    ((4,), (4,)),
]:
    a, b = torch.ones(left), torch.ones(right)
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        a @ b
    ran = {event.name for event in seen.events()} & KERNELS
    print(left, "@", right, "ran", *ran)

# %% batch-changes-the-result
# Why does the same input give another result in a batch?
#
# In the last bits it may: a product of another size is cut into other blocks or goes to another kernel, and sums are added in another order. Floats are not associative, so neither result is wrong. Compare with `torch.testing.assert_close`, not with `==`.
#
# If the difference is larger, look for layers that mix samples: BatchNorm in training mode, dropout, padding that attention does not mask. `model.eval()` takes away the first two.
#
# `torch.use_deterministic_algorithms(True)` makes the same call give the same bits each time. It does not make a batch of one equal to a row of a batch of 64.
#
# Go on: ch03_matmul#steady_matmul, ch05_autograd#evaluating
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 5)
plain, normed = (
    nn.Linear(5, 3),
    nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3)),
)
torch.testing.assert_close(plain(x)[:2], plain(x[:2]))
print("linear: equal within rounding")
for mode in (True, False):
    normed.train(mode)
    apart = (normed(x)[:2] - normed(x[:2])).abs().max().item()
    print(
        "with BatchNorm,",
        "train:" if mode else "eval: ",
        "another result" if apart > 0.1 else "equal within rounding",
    )
terms = torch.tensor([1e8, 1.0, -1e8, 1.0])
print(
    "order alone:",
    (((terms[0] + terms[1]) + terms[2]) + terms[3]).item(),
    ((terms[0] + terms[2]) + (terms[1] + terms[3])).item(),
)

# %% loss-of-n-by-1-and-n
# Why "Using a target size that is different to the input size"?
#
# Predictions of shape `(n, 1)` and targets of shape `(n,)` broadcast to `(n, n)`: every prediction is compared with every target. The loss is a number, it even goes down, and the best that the model can do is to predict the mean of all targets.
#
# `mse_loss` and `l1_loss` warn. Your own `((pred - target) ** 2).mean()` does not, and nor does `pred == target` in a metric.
#
# Write `pred.squeeze(-1)`, with the dim: a bare `squeeze()` also removes a batch of one. Or give the target the extra dim. An assertion of equal shapes in front of every loss costs nothing.
#
# Look: strides/cells#shape=1x3&ops=expand.3.3&at=1x2 | What broadcasting does to three targets: three rows of the same cells.
#
# Go on: ch03_matmul#a-vector-or-a-column, ch02_strides#broadcast_strides, myths#n-by-one-is-a-vector
import warnings

import torch
from torch.nn import functional as F

pred, target = (
    torch.tensor([[1.0], [2.0], [3.0]]),
    torch.tensor([1.0, 2.0, 3.0]),
)
difference = pred - target
print(tuple(difference.shape), "loss:", (difference**2).mean().item())
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    F.mse_loss(pred, target)
print(str(caught[0].message).partition(". ")[0])
print("squeezed:", F.mse_loss(pred.squeeze(-1), target).item())
print(
    "accuracy:",
    (pred == target).float().mean().item(),
    (pred.squeeze(-1) == target).float().mean().item(),
)

# %% attention-mask
# True or False: which positions does an attention mask keep?
#
# It depends on the function, and the two in PyTorch are opposite. In `F.scaled_dot_product_attention` a boolean mask says who takes part: True is kept. In `nn.MultiheadAttention` and `nn.Transformer`, `key_padding_mask` and a boolean `attn_mask` say who is left out: True is masked.
#
# A float mask means the same in both: it is added to the scores, 0 keeps, −inf removes.
#
# A row with nothing to attend to: `softmax` of nothing but −inf is NaN. `scaled_dot_product_attention` with a boolean mask gives zeros there; your own attention gives NaN, and so do its gradients.
#
# Go on: ch03_matmul#attention, ch03_matmul#streaming_attention
import torch
from torch import nn
from torch.nn import functional as F

q, k = torch.zeros(1, 1, 2), torch.zeros(1, 3, 2)
v = torch.tensor(
    [[[1.0, 1.0], [2.0, 2.0], [100.0, 100.0]]]
)  # the third is padding
mask = torch.tensor([[[True, True, False]]])
print(
    "sdpa, True for the first two:",
    F.scaled_dot_product_attention(q, k, v, attn_mask=mask)[0, 0, 0].item(),
)

layer = nn.MultiheadAttention(2, 1, bias=False, batch_first=True)
_, weights = layer(q, k, v, key_padding_mask=mask[0])
print("the same mask as key_padding_mask:", weights[0, 0].tolist())
none = torch.zeros(1, 1, 3, dtype=torch.bool)
print(
    "nobody:",
    F.scaled_dot_product_attention(q, k, v, attn_mask=none)[0, 0].tolist(),
)
print("by hand:", torch.full((3,), -torch.inf).softmax(0).tolist())

# %% conv-or-linear
# Is a 1×1 convolution the same as a linear layer?
#
# Yes, applied at every pixel: the same weights, the same numbers. `Linear` works on the last dim, a convolution on dim 1, so one of them needs a permute.
#
# In general a convolution is a product: cut all windows out (`unfold`), lay each flat, multiply by the weights laid flat. A filter covers all input channels, so a layer from 8 to 16 channels has 16 filters of 8 × k × k weights.
#
# A `Linear` over the flattened image is a convolution, too, with a kernel as large as the image. Written so, a classifier runs on larger images and gives a map of classes.
#
# Go on: ch03_matmul#linear_as_conv, ch03_matmul#conv2d, myths#one-by-one-conv
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(2, 8, 5, 5)
conv, linear = nn.Conv2d(8, 16, 1), nn.Linear(8, 16)
linear.weight.data, linear.bias.data = (
    conv.weight.data[:, :, 0, 0],
    conv.bias.data,
)
torch.testing.assert_close(
    conv(x), linear(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
)
print("1×1: equal")

conv = nn.Conv2d(8, 16, 3, bias=False)
windows = F.unfold(x, 3)  # 2 images, 8·3·3 numbers, 9 places
torch.testing.assert_close(
    conv(x), (conv.weight.reshape(16, -1) @ windows).reshape(2, 16, 3, 3)
)
print("3×3 as a product: equal,", *conv.weight.shape, "@", *windows.shape)
