# Number formats: claims, what is true, and programs that show it.

# %% fp16-range format_limits
# FP16 reaches from 1e-15 to 1e16.
#
# Five exponent bits count powers of two, not of ten. FP16 ends at 65,504, and below 2⁻²⁵ all is zero.
for value in (1e-15, 2**-24, 65504.0, 65520.0, 1e16):
    print(f"{value:<24g} -> {torch.tensor(value).half().item():g}")

# %% fp32-range format_limits
# FP32 goes from 1e-38 to 1e38.
#
# Its largest number is 3.4e38. Below 1.18e-38 it goes on with subnormals, ever coarser, down to 1.4e-45.
for value in (3e38, 3.5e38, 1e-40, 1e-45, 5e-46):
    print(f"{value:<7g} -> {torch.tensor(value).item():g}")

# %% bf16-range format_limits
# BF16 has eight exponent bits, so it reaches from 1e-127 to 1e128.
#
# Eight exponent bits of a power of two: the range of FP32.
info = torch.finfo(torch.bfloat16)
print(f"{info.smallest_normal:.4g} to {info.max:.4g}")
print(torch.tensor(1e128, dtype=torch.float64).bfloat16().item())

# %% bf16-fp16-twins format_limits
# BF16 and FP16 are the same thing from two vendors: 16 bits, half the memory.
#
# They cut their 16 bits differently. BF16 has FP32's range and 8 significant bits; FP16 has 11, and a range that gradients leave.
for dtype in (torch.bfloat16, torch.float16):
    info = torch.finfo(dtype)
    print(f"{dtype!s:<15} max {info.max:<10.4g} eps {info.eps:<10.4g}", end=" ")
    print("1e-20 ->", f"{torch.tensor(1e-20).to(dtype).item():.2g}")

# %% decimals-of-fp32 spacing
# FP32 is precise to 0.000001.
#
# Precision is relative. Between 8,388,608 and 16,777,216 the step is 1; beyond, odd numbers are gone.
print((torch.tensor(16_777_216.0) + 1).item())
at = torch.tensor(1e6)
print(torch.nextafter(at, at + 1).item() - 1e6)

# %% fp32-is-enough compensated_sum
# FP32 is what science computes in; it is exact enough.
#
# About seven digits. Beside 1e8 a 1 is rounded away, and a difference of near neighbours shows what is lost.
for dtype in (torch.float32, torch.float64):
    big = torch.tensor(1e8, dtype=dtype)
    print(dtype, ((big + 1) - big).item())

# %% tf32-is-a-dtype round_mantissa
# TF32 is a 19-bit format that tensors can have.
#
# No dtype has that name. TF32 is a way to multiply (the documentation's page *CUDA semantics*): tensors stay FP32 with their four bytes, the product reads fewer bits of them.
dtypes = [name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)]
print([name for name in dtypes if "32" in name])

# %% cuda-computes-in-fp32 round_mantissa
# On a GPU, FP32 tensors are computed with in FP32 unless you ask for less.
#
# Matrix products are, by default. Convolutions by cuDNN may use TF32 on hardware that has it, and nobody asked: the documentation's page *CUDA semantics*, and the flags.
print("products    ", torch.backends.cuda.matmul.allow_tf32)
print("convolutions", torch.backends.cudnn.allow_tf32)


# %% fp16-cannot-train loss_scale_step
# FP16 cannot train, its gradients vanish.
#
# Only the small ones, and only if nobody scales the loss. Multiply it by 1024 and divide the gradient, and 1e-8 survives.
def gradient(scale):
    w = torch.ones(1, dtype=torch.float16, requires_grad=True)
    small = torch.tensor(1e-4, dtype=torch.float16)
    (w * small * small * scale).sum().backward()
    return w.grad.float().item() / scale


print(f"{gradient(1.0):.3g}, scaled: {gradient(1024.0):.3g}")

# %% bf16-weights-learn sgd_step
# BF16 weights train like FP32 weights, with a little noise.
#
# A step below half a unit in the last place is no step. A hundred of them are none either.
for dtype in (torch.float32, torch.bfloat16):
    weight = torch.ones((), dtype=dtype)
    for _ in range(100):
        weight -= 6e-4
    print(dtype, round(weight.item(), 4))

# %% sums-in-bf16 compensated_sum
# A sum of 4096 ones is 4096 in any format that can hold 4096.
#
# An accumulator in BF16 stays at 256, where the step becomes 2. `torch.sum` is right because it accumulates in FP32.
ones = torch.ones(4096, dtype=torch.bfloat16)
total = torch.zeros((), dtype=torch.bfloat16)
for one in ones:
    total = total + one
print(total.item(), ones.sum().item())

# %% fp8-overflow encode_fp8
# A number too large for FP8 becomes infinite, or NaN.
#
# In torch 2.13 `float8_e4m3fn` saturates at 448, even infinity does. `float8_e5m2` has an infinity and uses it.
x = torch.tensor([448.0, 480.0, 1e9, float("inf")])
print(x.to(torch.float8_e4m3fn).float().tolist())
print((x * 1000).to(torch.float8_e5m2).float().tolist())

# %% casts-round-once round_to_bf16
# A cast gives the nearest number that the new format has.
#
# From float64 to bfloat16 PyTorch goes through float32, and rounds twice. Just above a tie, that is wrong.
x = torch.tensor(1 + 2**-8 + 2**-40, dtype=torch.float64)
got, above = x.bfloat16().double(), torch.tensor(1.0078125, dtype=torch.float64)
print(got.item(), "though", above.item(), "is nearer:", bool((above - x).abs() < (got - x).abs()))

# %% int8-sign-bit decode
# INT8 has a sign bit and seven bits of magnitude.
#
# Two's complement: −1 is 0xff, there is a −128, and 127 + 1 wraps to it.
x = torch.tensor([-1, -128, 127], dtype=torch.int8)
print([hex(byte) for byte in x.view(torch.uint8).tolist()], (x + 1).tolist())

# %% int8-step-one quantize
# INT8 values are whole numbers, so the error is up to a half.
#
# A quantized value is scale · (q − zero point). The step is the scale, and you choose it.
x = torch.tensor([0.101, 0.104, 0.106])
y = torch.fake_quantize_per_tensor_affine(x, 0.01, 0, -128, 127)
print([round(value, 4) for value in y.tolist()])

# %% quantization-formula quantize
# Quantization is Q(x) = scale · (x − offset).
#
# That is the way back. The way there divides, rounds, adds the zero point and clamps.
x, scale, zero = torch.tensor([1.0, -1.0, 0.26]), 0.1, 10
q = (torch.round(x / scale) + zero).clamp(0, 255)
print(q.tolist(), "not", [round(v, 2) for v in (scale * (x - zero)).tolist()])
print([round(v, 2) for v in (scale * (q - zero)).tolist()])

# %% quantized-sum quantized_add
# To add two quantized tensors, add their integers and multiply by the output's scale.
#
# Each input has a scale and a zero point of its own, and the output a third pair. One shared factor fits only if all agree.
x, y = 0.5, 2.0
qx, qy = round(x / 0.01) + 128, round(y / 0.05) + 100  # scales 0.01, 0.05
right = round(0.01 / 0.06 * (qx - 128) + 0.05 / 0.06 * (qy - 100)) + 110
wrong = round(0.06 * (qx + qy))
for q in (right, wrong):
    print("q =", q, "reads as", round(0.06 * (q - 110), 2))

# %% rescale-one-input quantized_add
# To add quantized tensors, bring one of them to the scale of the other.
#
# Then the sum is in that other scale. Read with the output's, it is wrong; in general both are rescaled.
qx, qy, sx, sy, out = 100, 40, 0.01, 0.05, 0.06  # 1.0 and 2.0
one = round(qx * sx / sy) + qy
both = round(qx * sx / out + qy * sy / out)
print("one:", round(one * out, 2), "both:", round(both * out, 2))

# %% quantized-cat quantized_concat
# Quantized tensors are concatenated by concatenating their integers.
#
# Only when scales and zero points agree. Otherwise the same integer means two numbers.
x, y = torch.tensor([100]), torch.tensor([100])  # 1.0 by a scale of 0.01, 5.0 by 0.05
joined = torch.cat([x, y])
print([round(0.05 * q, 2) for q in joined.tolist()], "instead of [1.0, 5.0]")

# %% int8-matmul int8_matmul
# Convert weights and inputs to INT8, and the same code runs faster.
#
# The same code overflows: an INT8 product accumulates in INT8. Sums belong in INT32, to be rescaled afterwards.
a = torch.full((32, 32), 100, dtype=torch.int8)
print("mm     ", torch.mm(a, a)[0, 0].item())
print("int32  ", torch._int_mm(a, a)[0, 0].item())

# %% tensors-of-strings
# A tensor can hold any data, text included.
#
# Numbers and booleans, nothing else. Text becomes numbers before it becomes a tensor.
try:
    torch.tensor(["text"])
except ValueError as error:
    print(error)

# %% algebra-holds compensated_sum
# x + y − y is x, and x · 0 is 0; a compiler may use it.
#
# Not for floats: the first loses x where y is large, the second is NaN for infinities.
x, y, infinite = torch.tensor(1.0), torch.tensor(1e8), torch.tensor(float("inf"))
print(((x + y) - y).item(), (infinite * 0).item())
