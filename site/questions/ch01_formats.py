# Numbers and precision: questions, answers, and programs that show them.

# %% fp16-gives-inf
# Why does fp16 give inf or NaN?
#
# The largest number of `float16` is 65504; from 65520 on a result rounds to infinity. Squares, sums, norms and unscaled attention scores pass that easily: 256 · 256 is too much already. Then inf − inf or 0 · inf makes NaN, and a NaN spreads to every weight.
#
# `bfloat16` has the range of `float32` and would not overflow. It has three bits fewer of precision.
#
# In `float16`, scale before you square or sum, let sums and norms run in `float32` (autocast does so on a GPU), and look for the first tensor that is not finite: `torch.isfinite(t).all()` in a forward hook.
#
# An overflow in the gradients alone is a matter of the loss scale. `GradScaler` skips that step and halves the scale.
#
# Look: formats/round#format=fp16&fp32=477ff000 | 65520 on its way into float16: it is half way from 65504 to 65536, which float16 does not have.
#
# Go on: ch01_formats#format_limits, ch01_formats#loss_scale_step, myths#fp16-range
import torch

x = torch.tensor([65504.0, 65519.0, 65520.0])
print(x.to(torch.float16).tolist(), x.to(torch.bfloat16).tolist())
h = torch.tensor([256.0], dtype=torch.float16)
print((h * h).item(), (h * h - h * h).item())
scores = torch.full((4,), 300.0, dtype=torch.float16)
print(scores.pow(2).mean().item(), scores.float().pow(2).mean().item())

# %% bf16-or-fp16
# Is bf16 better than fp16?
#
# Both take 16 bits. `bfloat16` spends eight on the exponent, so it reaches as far as `float32`, and seven on the fraction: between two and three decimal digits. `float16` spends five and ten: a bit over three digits, from 6e-8 to 65504.
#
# For training take `bfloat16` where the hardware has it. Nothing overflows that would not in `float32`, and you need no loss scaling. For inference with values of known size `float16` is closer, by a factor of 8.
#
# In either, keep the weights that the optimizer updates in `float32`: small updates round away.
#
# Look: formats/formats#format=bf16&fp32=3f9d70a4 | 1.23 in bfloat16. Choose FP16 above, and see three more bits kept.
#
# Go on: ch01_formats#which-format-where-and-why, ch01_formats#spacing, myths#bf16-fp16-twins
import torch

for dtype in (torch.float16, torch.bfloat16):
    info = torch.finfo(dtype)
    smallest = info.smallest_normal * info.eps
    print(f"{str(dtype)[6:]:9} largest {info.max:.3g},", end=" ")
    print(f"next after 1: 1 + {info.eps:g}, smallest {smallest:.1g}")
for value in (1.23, 70000.0, 1e-8):
    x = torch.tensor(value)
    print(value, "->", f"{x.half().item():.6g}", f"{x.bfloat16().item():.6g}")

# %% bf16-weights-do-not-learn
# Why do my bf16 weights stop learning?
#
# The updates are smaller than half the gap to the next number, so `w - lr * g` rounds back to `w`. Just below 1, `bfloat16` numbers are 0.0039 apart: a step down by less than 0.0019 changes nothing, however often it comes.
#
# Keep a `float32` copy of the weights for the optimizer (master weights): load the model in `float32` and use `torch.autocast` for the forward pass. Or add what was lost last time to the next update (compensated summation). Or round at random, so that an update of a tenth of the gap moves the weight one time in ten.
#
# A larger learning rate only hides it until it decays.
#
# Look: formats/round#format=bf16&fp32=3f7fbe77 | 0.999 on its way into bfloat16: the nearest number is 1.
#
# Go on: ch01_formats#sgd_step, ch01_formats#stochastic_round, myths#bf16-weights-learn
import torch

weights = {
    "bfloat16": torch.ones(1, dtype=torch.bfloat16),
    "float32": torch.ones(1),
}
for _ in range(1000):
    for w in weights.values():
        w -= 0.001
print({name: round(w.item(), 4) for name, w in weights.items()})

# float32 inside autocast: the product is bfloat16, weight and gradient are not
layer = torch.nn.Linear(4, 4)
with torch.autocast("cpu", dtype=torch.bfloat16):
    y = layer(torch.ones(1, 4))
y.sum().backward()
print(y.dtype, layer.weight.dtype, layer.weight.grad.dtype)

# %% gradscaler-needed
# Do I need GradScaler with bf16?
#
# No. The scaler exists because small gradients vanish in `float16`: below 3e-8 everything becomes zero. It multiplies the loss by a large number, divides the gradients by it before the step, and skips steps that overflowed.
#
# `bfloat16` has the exponents of `float32`, so gradients vanish in it only where they would anyway. With `float16` you do need it.
#
# Two things go wrong with it. Clip gradients after `scaler.unscale_(optimizer)`, or you clip numbers that are 65536 times too large. And `scaler.step` may skip the optimizer's step, so a scheduler that you call regardless runs ahead.
#
# Look: formats/formats#format=fp16&fp32=322bcc77 | 1e-8 becomes zero in float16. Choose BF16: it stays.
#
# Go on: ch01_formats#loss_scale_step, myths#fp16-cannot-train
import torch

gradient = torch.tensor(1e-8)
scaled = (gradient * 65536).half().float().item() / 65536
print("float16: ", gradient.half().item(), " scaled:", scaled)
print("bfloat16:", gradient.bfloat16().item())

w = torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([w], lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for factor in (1.0, float("inf")):
    optimizer.zero_grad()
    scaler.scale((w * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    print("weight", round(w.item(), 2), "scale", scaler.get_scale())

# %% compare-float-tensors
# How do I compare two float tensors?
#
# Not with `==` unless you mean the bits. Use `torch.testing.assert_close(actual, expected)`: it takes tolerances that fit the dtype, says how many elements differ, by how much and where, and looks at shape and dtype, too. `torch.allclose` gives a bare True or False, with 1e-5 and 1e-8 for every dtype: too strict for `bfloat16`, too loose for `float64`.
#
# The condition is |a − b| ≤ atol + rtol · |b|. Near zero only `atol` counts.
#
# Two right programs differ in the last bits when they add in another order. Expect an error of about the dtype's `eps` times the size of what was added, not of the result.
#
# NaN equals nothing: pass `equal_nan=True`.
#
# Go on: ch01_formats#spacing, ch03_matmul#steady_matmul, myths#algebra-holds
import torch

a, b = torch.tensor(0.1), torch.tensor(1.0)
print((a + b - b == a).item(), torch.allclose(a + b - b, a))
x, y = (
    torch.tensor([1.0], dtype=torch.bfloat16),
    torch.tensor([1.0078125], dtype=torch.bfloat16),
)
print("neighbours in bfloat16:", torch.allclose(x, y))
torch.testing.assert_close(x, y)  # its tolerance fits the dtype
try:
    torch.testing.assert_close(
        torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1])
    )
except AssertionError as error:
    print(*str(error).splitlines()[2:4], sep="\n")

# %% sum-of-floats-is-wrong
# Why is the sum of many floats wrong?
#
# Once a running sum is large, the gap to its neighbours is larger than what you add, and adding does nothing. In `float32` counting by ones ends at 16777216, in `bfloat16` at 256, in `float16` at 2048.
#
# `torch.sum` is better than your loop: on a CPU it adds in blocks, and 16-bit inputs are added in `float32`. What you lose comes from your own `total += x`: metrics, averages of losses, running statistics.
#
# Keep totals in `float64`, or pass `dtype=torch.float64` to `sum`. Or keep the part that was rounded away in a second variable and add it next time (Kahan).
#
# Look: formats/bits#format=bf16&bits=4380 | 256 in bfloat16: its upper neighbour is 258, so 257 does not exist.
#
# Go on: ch01_formats#compensated_sum, myths#sums-in-bf16, myths#fp32-is-enough
import torch

for dtype in (torch.bfloat16, torch.float16):
    total, one = torch.zeros((), dtype=dtype), torch.ones((), dtype=dtype)
    for _ in range(4096):
        total += one
    at_once = torch.ones(4096, dtype=dtype).sum().item()
    print(str(dtype)[6:], "loop:", total.item(), "torch.sum:", at_once)
big = torch.tensor(16777216.0)
print((big + 1 - big).item(), (big.double() + 1 - big).item())

# %% int8-and-uint8-overflow
# Why are my uint8 or int8 values wrong after arithmetic?
#
# Integers wrap around: 200 + 100 in `uint8` is 44. No error, no clipping. Images are `uint8`, so adding two of them, or a difference that is below zero, gives nonsense in places.
#
# Convert first: `image.float()` or `image.to(torch.int32)`. Coming back, clamp, then round, then convert; the conversion itself cuts towards zero, and a float that does not fit gives whatever the processor makes of it.
#
# `sum` makes `int64` of integers, so it is safe. Division by `/` makes floats. A Python number does not widen a tensor: `uint8` plus 1 stays `uint8`.
#
# Look: formats/bits#format=int8&bits=80 | −128 in int8: the sign bit is worth −128, and one step below it is 127.
#
# Go on: ch01_formats#quantize, ch01_formats#quantized_add, myths#int8-sign-bit
import torch

a, b = (
    torch.tensor([200, 20], dtype=torch.uint8),
    torch.tensor([100, 30], dtype=torch.uint8),
)
print((a + b).tolist(), (a - b).tolist(), (a + 100).dtype)
print((a.int() + b.int()).clamp(0, 255).to(torch.uint8).tolist())
print(
    torch.tensor([127], dtype=torch.int8).add(1).item(),
    a.sum().dtype,
    (a / b).dtype,
)
print(torch.tensor([2.9, -2.9]).to(torch.int8).tolist())

# %% what-is-tf32
# What is TF32, and does it make results wrong?
#
# A way to multiply, no dtype. Tensors stay `float32`; the tensor cores of NVIDIA GPUs read ten of their 23 fraction bits, multiply, and add in `float32`. Range and memory are those of `float32`. The inputs have `float16`'s precision: about three decimal digits.
#
# For training that is nearly always enough. It is not where large terms cancel: distances computed as a² − 2ab + b², inverses, physics.
#
# `torch.set_float32_matmul_precision("high")` allows it for matrix products; the default, "highest", does not. Convolutions by cuDNN have a switch of their own, which is on by default.
#
# Here TF32's rounding is done by hand, on a CPU. An H100 did the same to all of 262,144 numbers, half of them ties (`benchmarks/tensor_cores.py`).
#
# Look: formats/round#format=tf32&fp32=3f800fff | A float32 read as TF32: 13 bits go.
#
# Go on: ch01_formats#round_mantissa, ch01_formats#matmul_bf16x3, myths#tf32-is-a-dtype
import torch

print(hasattr(torch, "tf32"), torch.get_float32_matmul_precision())


def as_tf32(x):  # to nearest even: 13 bits go
    bits = x.view(torch.int32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)


a, b = torch.tensor([1000.0]), torch.tensor([1000.6])
print("inputs as read:", as_tf32(a).item(), as_tf32(b).item())
exact = (a - b) ** 2
expanded = (
    as_tf32(a) * as_tf32(a)
    - 2 * as_tf32(a) * as_tf32(b)
    + as_tf32(b) * as_tf32(b)
)
print("squared distance:", round(exact.item(), 3))
print("by the expanded formula:", round(expanded.item(), 3))
