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

# %% [markdown] chapter="ch01_formats"
# title: Number formats
# summary: >-
#   A number in memory is a row of bits and an agreement on how to read it. PyTorch knows more than
#   twenty such agreements. Training uses several at once, and most surprises (a loss that turns
#   into NaN, weights that stop moving, a matmul that is off in the fourth digit) come from the
#   step where a number leaves one format and enters another. In this chapter you take these
#   steps by hand, bit by bit, and PyTorch's own results tell you whether you got them right.
# off limits:
#   products:
#     says: "operators that multiply matrices"
#     rules: ["aten:mm", "aten:bmm", "aten:addmm", "aten:mv", "aten:dot", "aten:baddbmm", "aten:addmv", "aten:vdot"]
#   quantized:
#     says: "PyTorch's own quantized tensors"
#     rules: [torch.quantize_per_tensor, torch._make_per_tensor_quantized_tensor, torch._empty_affine_quantized, torch.ops.quantized]

# %% [markdown]
# ## How to work
#
# Each exercise has a card, a few cells to read and run, and one cell to write: the one that
# raises `NotImplementedError`. The cell after it grades what you wrote, as often as you like.
# It shows which input fails, what was expected and what came. Your function gets its arguments in
# the order of the stub, and leaves them as they came unless the text says otherwise.
#
# Where a cell calls `predict(...)`, write your guess in place of the dots before you run it.
# Nobody grades a guess; having made one is what makes the answer stick.

# %%
import math

import torch

from grader import grade, hint, predict, solution

# %% [markdown] sitting="reading"
# question: What do the bits of a float say?
# reached: >-
#   Three fields: a sign, a power of two, and a part of the way to the next one. Two widths decide
#   range and precision, and the gap between neighbours doubles at every power of two.

# %% [markdown]
# ## The family
#
# A floating-point format cuts its bits into three fields: one **sign** bit, some **exponent** bits,
# and the rest for the **mantissa** (also called fraction). Exponent bits buy range. Mantissa bits buy
# precision. (One of PyTorch's has the exponent alone: `float8_e8m0fnu`, a format for scale factors.)

# %%
dtypes = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
print(len(dtypes), "dtypes; the least float8_e8m0fnu:", torch.finfo(torch.float8_e8m0fnu).min)
print(f"{'dtype':>14} {'bits':>4} {'largest':>12} {'smallest normal':>16} {'eps':>10}")
for dtype in [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
]:
    info = torch.finfo(dtype)
    name = str(dtype).removeprefix("torch.")
    print(f"{name:>14} {info.bits:>4} {info.max:>12.4g} {info.tiny:>16.4g} {info.eps:>10.4g}")

# %% [markdown]
# Compare `float16` and `bfloat16`: the same sixteen bits, cut in different places. `float16`
# spends five on the exponent and ten on the mantissa; `bfloat16` spends eight and seven. Eight is
# what `float32` has too, and so `bfloat16` reaches almost as far, with much coarser steps.
#
# Look: formats/formats#format=bf16&bits=3dcd | 0.1 in `bfloat16`. Choose another row: other bits,
# another value, and a range that reaches from the smallest number to the largest.

# %%
x = torch.tensor(1 / 3)
for dtype in [torch.float32, torch.float16, torch.bfloat16]:
    print(f"{dtype!s:>15} {x.to(dtype).item():.10f}")

# %% [markdown] exercise="decode"
# title: Read a float
# minutes: 20
# difficulty: 2
# points: 4
# short: true
# prerequisites: []
# teaches: >-
#   what the three fields of a float mean, and the three cases that the exponent tells apart.
# leaves out: formats without infinities, such as float8_e4m3fn.
# off limits: [torch.Tensor.view, torch.Tensor.set_, torch.Tensor.numpy, torch.Tensor.__array__, torch.HalfTensor, torch.frombuffer, "direct:builtins.memoryview", "import:struct", "import:array", "import:pickle", "import:marshal", "import:numpy", "import:ctypes"]
# forbids: "whatever reads bits as a number for you"

# %% [markdown]
# Take a pattern of bits apart: from the left the sign $s$, then $E$ exponent bits, then $M$
# mantissa bits. Read the exponent field as a whole number $e$ and the mantissa field as a whole
# number $m$. The **bias** is $2^{E-1}-1$. Three cases follow:
#
# | exponent field | value |
# |---|---|
# | all ones | $\pm\infty$ if $m = 0$, else NaN |
# | all zeros | $(-1)^s \cdot 2^{1-\text{bias}} \cdot \frac{m}{2^M}$ (zero, or a *subnormal*) |
# | anything else | $(-1)^s \cdot 2^{e-\text{bias}} \cdot \left(1 + \frac{m}{2^M}\right)$ |
#
# Look at the middle row. With the exponent at its lowest there is no leading one any more, and the
# scale stays at $2^{1-\text{bias}}$ instead of going one lower. That is how the format comes down
# to zero in even steps instead of leaving a gap around it.
#
# The number 1.5 in `float16`:

# %%
pattern = torch.tensor(1.5, dtype=torch.float16).view(torch.int16).item()
text = f"{pattern:016b}"
print(text[0], text[1:6], text[6:])

# %% [markdown]
# The exponent field `01111` is 15, the bias is 15, the mantissa is one half: $2^0 \cdot 1.5$.
#
# Look: formats/bits#format=fp16&bits=3e00 | 1.5 in `float16`. Flip any of its sixteen bits, and
# read what the pattern stands for now.
#
# **Predict.** Which value does the smallest positive pattern of `float16`, `0x0001`, stand for?
# Write it as a power of two: the exponent alone.

# %%
predict(
    ...,
    lambda: int(math.log2(torch.tensor(1, dtype=torch.int16).view(torch.float16).item())),
)

# %% [markdown]
# **Write `decode(pattern, exponent_bits, mantissa_bits)`.** `pattern` is a whole number of
# $1 + E + M$ bits. Return the value as a Python `float`. It must work for any format of this kind
# with 2 to 8 exponent and 1 to 23 mantissa bits. A Python `float` has room for all of them, exactly.
#
# <details><summary>Hint 1: the fields</summary>
#
# Shift right to drop what is below a field, and mask with `(1 << width) - 1` to drop what is above.
#
# </details>
# <details><summary>Hint 2: exact scaling</summary>
#
# `m * 2.0 ** k` is exact for every value that occurs here; so is `math.ldexp(m, k)`.
# Write both finite cases as a whole number times a power of two.
#
# </details>
# <details><summary>Hint 3: minus zero</summary>
#
# A format with a sign bit has two zeros. `-0.0 == 0.0` is true, and yet they are different
# patterns: `math.copysign(1.0, -0.0)` is `-1.0`. Multiply by the sign last, and as a float.
#
# </details>


# %% solution="decode"
def decode(pattern: int, exponent_bits: int, mantissa_bits: int) -> float:
    """Return the value of a float's bits.

    pattern: a whole number from 0 to 2 ** (1 + exponent_bits + mantissa_bits) - 1
    """
    ### BEGIN SOLUTION
    mantissa = pattern & ((1 << mantissa_bits) - 1)
    exponent = (pattern >> mantissa_bits) & ((1 << exponent_bits) - 1)
    sign = -1.0 if pattern >> (mantissa_bits + exponent_bits) else 1.0
    bias = (1 << (exponent_bits - 1)) - 1

    if exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else sign * math.inf
    if exponent:
        mantissa += 1 << mantissa_bits  # the leading one that is not stored
    else:
        exponent = 1  # subnormals share the scale of the smallest normal numbers
    return sign * math.ldexp(mantissa, exponent - bias - mantissa_bits)
    ### END SOLUTION


# %% grade="decode"
grade("decode")

# %% [markdown] exercise="format_limits"
# title: Know a format by its two widths
# minutes: 20
# difficulty: 2
# points: 5
# prerequisites: [decode]
# teaches: >-
#   that range and precision follow from the number of exponent and mantissa bits, and from
#   nothing else.
# leaves out: formats that give up their infinities for more numbers, such as float8_e4m3fn.
# off limits: [torch.finfo, "import:numpy"]

# %% [markdown]
# `torch.finfo` knows the limits of each format. It need not look them up: for formats of the kind that
# `decode` reads, two widths, $E$ and $M$, determine them all. Four numbers are worth knowing by heart,
# or by rule; `finfo` has all but the third:
#
# | name | meaning |
# |---|---|
# | `max` | the largest finite number |
# | `smallest_normal` | the smallest positive number with a leading one |
# | `smallest_subnormal` | the smallest positive number at all |
# | `eps` | the distance from 1 to the next larger number |
#
# The first three are about **range**; $E$ decides most of it. `eps` is about **precision**, and
# only $M$ has a say in it. Do not take the smallest number for `eps`: they have nothing to do with
# each other.
#
# The exponent counts powers of **two**. That of `float16` runs from -14 to 15, and one reads now
# and then that the format reaches from $10^{-15}$ to $10^{16}$. Try it:

# %%
for value in [1e-15, 1e-7, 6e4, 1e16]:
    half = torch.tensor(value, dtype=torch.float16).item()
    brain = torch.tensor(value, dtype=torch.bfloat16).item()
    print(f"{value:<8g} float16 {half:<12.5g} bfloat16 {brain:.5g}")

# %% [markdown]
# Two of the four are gone. The second survives, but it lies below `smallest_normal`, where
# `float16` has fewer and fewer bits left: it comes out 19% too large. `bfloat16` holds all four,
# each to two or three digits.
#
# **Predict.** How many different positive subnormal numbers does `float16` have?

# %%
predict(
    ...,
    lambda: sum(
        0 < value < torch.finfo(torch.float16).smallest_normal
        for value in torch.arange(32_768, dtype=torch.int16).view(torch.float16).tolist()
    ),
)

# %% [markdown]
# **Write `format_limits(exponent_bits, mantissa_bits)`.** The format has one sign bit and is of
# the kind that `decode` reads: an exponent of all ones means infinity or NaN, one of all zeros
# means zero or a subnormal. Return a `dict` with the four keys of the table and a Python `float`
# under each, exact. It must work for 2 to 11 exponent bits and 1 to 52 mantissa bits. The widest
# of these formats is `float64`, the format of Python's own `float`.
#
# <details><summary>Hint 1: four patterns</summary>
#
# Write down the bits of each number. The largest finite one has every mantissa bit set, and the
# highest exponent field that is not kept for infinity. The smallest subnormal is the pattern 1.
#
# </details>
# <details><summary>Hint 2: the exponents</summary>
#
# With $b = 2^{E-1}-1$ for the bias, the highest exponent is $b$ and the lowest $1 - b$. The
# largest mantissa, with its leading one, is $2 - 2^{-M}$.
#
# </details>
# <details><summary>Hint 3: float64</summary>
#
# `2.0 ** 1024` raises `OverflowError`. The largest number is less than that, so there is a way
# to it on which no step is larger than the result.
#
# </details>


# %% solution="format_limits"
def format_limits(exponent_bits: int, mantissa_bits: int) -> dict[str, float]:
    """Return the limits of a format, exactly.

    exponent_bits: from 2 to 11
    mantissa_bits: from 1 to 52
    returns: floats under "max", "smallest_normal", "smallest_subnormal" and "eps"
    """
    ### BEGIN SOLUTION
    bias = (1 << (exponent_bits - 1)) - 1
    # In [1, 2) the exponent is 0, so the last mantissa bit alone is the step.
    eps = 2.0**-mantissa_bits
    # The exponent field 1 is the lowest with a leading one; subnormals share its scale.
    smallest_normal = 2.0 ** (1 - bias)
    return {
        # The highest field means infinity; one below it stands for the exponent `bias`.
        "max": (2.0 - eps) * 2.0**bias,
        "smallest_normal": smallest_normal,
        "smallest_subnormal": smallest_normal * eps,
        "eps": eps,
    }
    ### END SOLUTION


# %% grade="format_limits"
grade("format_limits")

# %% [markdown] exercise="spacing"
# title: Measure the gap to the next number
# minutes: 25
# difficulty: 3
# points: 7
# prerequisites: [decode]
# teaches: >-
#   that a float's precision is relative, so that the step between neighbours doubles at every
#   power of two.
# leaves out: the gap below a number, which is half as wide just at a power of two.
# off limits: [torch.nextafter, torch.Tensor.nextafter, torch.Tensor.nextafter_, "import:numpy"]
# forbids: "functions that go to the next number"

# %% [markdown]
# It is said that `float32` is precise to $10^{-7}$. As a step between numbers that is true in one
# place only. `torch.nextafter` walks from a number to its neighbour:

# %%
for value in [1e-30, 0.001, 1.0, 1000.0, 1e6, 1e9]:
    x = torch.tensor(value)
    step = torch.nextafter(x, torch.tensor(torch.inf)) - x
    print(f"{value:<8g} step {step.item():<12.6g} step / value {(step / x).item():.1e}")

# %% [markdown]
# The step grows with the number; for normal numbers their *ratio* stays between $2^{-24}$ and
# $2^{-23}$, which is near $10^{-7}$. Between one power of two and the next there are always $2^{23}$
# numbers, evenly spaced: as many from 1 to 2 as from 1,048,576 to 2,097,152. The distance from a number
# to the next larger one is called its **spacing**, or one *unit in the last place*.
#
# Look: formats/bits#format=fp16&bits=6800 | 2,048 in `float16`: the next number below is 1 away,
# the next one above is 2 away.
#
# Add less than half of it, and nothing happens. That is how a large sum stops growing, and how a
# weight stops moving.

# %%
x = torch.tensor(1e9)
print(x.item(), (x + 31).item(), (x + 33).item())

# %% [markdown]
# **Predict.** Which is the smallest positive whole number that `float32` cannot hold?

# %%
predict(
    ...,
    lambda: next(n for n in range(2**24 - 9, 2**25) if int(torch.tensor(n).float()) != n),
)

# %% [markdown]
# **Write `spacing(x)`.** `x` is a `float32` tensor of any shape and layout. Return a `float32`
# tensor of the same shape that holds, for each element, the distance from $|x|$ to the next larger
# `float32`. The sign of `x` does not matter; no result is negative. At the ends of the range:
#
# - zero and subnormal numbers are $2^{-149}$ apart;
# - the largest finite number counts as if the numbers went on in steps of the same size: $2^{104}$;
# - an infinity gives `inf`, and a NaN gives a NaN.
#
# Do not change `x`. `nextafter`, in whichever module, is off limits.
#
# <details><summary>Hint 1: only the exponent counts</summary>
#
# All numbers with the same exponent field have the same spacing. Clear the sign and the mantissa
# of `x.view(torch.int32)`: what is left is the power of two at or below $|x|$.
#
# </details>
# <details><summary>Hint 2: one step, as bits</summary>
#
# Patterns of positive floats are ordered as the numbers are. Set the lowest bit of that power of
# two and you have its next larger neighbour; read both as floats, and subtract.
#
# </details>
# <details><summary>Hint 3: the ends</summary>
#
# For zero and subnormals the cleared pattern is zero, and its neighbour is the smallest subnormal:
# nothing special is needed. For an infinity the neighbour is a NaN. If you compute
# $2^{e - 150}$ from the exponent field $e$ instead, mind that the fields 0 and 1 have the same
# scale, and that some spacings are subnormal themselves.
#
# </details>


# %% solution="spacing"
def spacing(x: torch.Tensor) -> torch.Tensor:
    """Return the distance from each magnitude to the next larger one.

    x: float32, any shape
    returns: float32, the same shape
    """
    ### BEGIN SOLUTION
    # Without sign and mantissa a number becomes the power of two at or below it, or zero.
    power = x.view(torch.int32) & 0x7F800000
    # Both are floats with the same exponent, so that their difference is exact. A step taken
    # here cannot reach infinity: the mantissa was empty.
    step = (power | 1).view(torch.float32) - power.view(torch.float32)
    return torch.where(x.isfinite(), step, x.abs())
    ### END SOLUTION


# %% grade="spacing"
grade("spacing")

# %% [markdown] sitting="rounding"
# question: Where does a number go that does not fit?
# reached: >-
#   To the nearest pattern, and in a tie to the even one: one addition on whole numbers does it.
#   What is too large becomes infinity, or the largest number, by choice.

# %% [markdown] exercise="round_to_bf16"
# title: Round FP32 to BF16
# minutes: 30
# difficulty: 3
# points: 6
# short: true
# prerequisites: [decode]
# teaches: >-
#   rounding to nearest, ties to even, as hardware does it: one addition on whole numbers.
# leaves out: other rounding modes, and flags that tell whether a result was inexact.
# off limits: ["cast:torch.bfloat16", torch.Tensor.bfloat16, "import:ctypes"]
# forbids: "casts to `bfloat16`; a bit pattern may be read as one"

# %% [markdown]
# A `bfloat16` is the upper half of a `float32`: the same sign, the same eight exponent bits, and
# the first seven of 23 mantissa bits. So rounding to it means to decide what happens to the upper
# sixteen bits when the lower sixteen go away.
#
# Simply dropping them is **truncation**. It is wrong by up to a whole step, and always towards zero.
# The default of IEEE 754, which PyTorch follows here, is to **round to nearest, ties to even**:
#
# - the lower half is less than `0x8000`: the upper half stays;
# - it is more than `0x8000`: the upper half goes up by one;
# - it is exactly `0x8000`, a **tie**: the upper half goes to whichever neighbour is even.
#
# Going up by one may carry out of the mantissa into the exponent. That is no accident: patterns of
# positive floats are ordered as the numbers are, so the pattern after the largest mantissa is the
# next power of two, and the pattern after the largest finite number is infinity.

# %%
for value in [1.0, 1.00390625, 1.01171875, 1.005]:
    bits32 = torch.tensor(value).view(torch.int32).item()
    bits16 = torch.tensor(value).to(torch.bfloat16).view(torch.int16).item()
    print(f"{value:<11} {bits32:#010x} -> {bits16:#06x}")

# %% [markdown]
# The second and the third value are ties. One went down, the other up.
#
# Look: formats/round#format=bf16&fp32=3f818000 | 1.01171875 is a tie, and the last bit that is kept
# is a 1, so it goes up. Flip a bit further down, and it is a tie no longer.
#
# **Predict.** The largest finite `float32` is `0x7f7fffff`. Which pattern does it become in
# `bfloat16`? Write it as text, such as `"0x7f7f"`.

# %%
predict(
    ...,
    lambda: hex(torch.tensor(torch.finfo(torch.float32).max).to(torch.bfloat16).view(torch.int16)),
)

# %% [markdown]
# **Write `round_to_bf16(x)`.** `x` is a `float32` tensor of any shape and layout. Return a new
# `bfloat16` tensor of the same shape whose every bit is as rounding to nearest, ties to even,
# makes it. A NaN must stay a NaN; which one is up to you. Do not change `x`.
#
# You may reinterpret bits in both directions: `x.view(torch.int32)`, and `.view(torch.bfloat16)`
# on an `int16` tensor. What you may not do is let PyTorch do the rounding.
#
# <details><summary>Hint 1: one addition</summary>
#
# Add `0x7fff` to the 32 bits and look at the upper half. Which of the three cases does that get
# right?
#
# </details>
# <details><summary>Hint 2: the tie</summary>
#
# In a tie the upper half must go up exactly if it is odd. Its lowest bit is `(bits >> 16) & 1`.
# Add that, too.
#
# </details>
# <details><summary>Hint 3: NaN</summary>
#
# A NaN is any pattern with all exponent bits set and a mantissa that is not zero. The addition can
# carry such a mantissa out to zero, or through the sign. Handle NaN apart, with `torch.where`.
#
# </details>


# %% solution="round_to_bf16"
def round_to_bf16(x: torch.Tensor) -> torch.Tensor:
    """Round to nearest, ties to even.

    x: float32, any shape
    returns: bfloat16, the same shape
    """
    ### BEGIN SOLUTION
    bits = x.view(torch.int32)
    odd = (bits >> 16) & 1
    # Below a tie 0x7fff does not carry into the upper half, above it always does;
    # in a tie the carry comes from `odd` alone.
    rounded = (bits + 0x7FFF + odd) >> 16
    # A NaN keeps its upper half; the quiet bit makes sure that its mantissa is not zero.
    quiet = (bits >> 16) | 0x0040
    return torch.where(x.isnan(), quiet, rounded).to(torch.int16).view(torch.bfloat16)
    ### END SOLUTION


# %% grade="round_to_bf16"
grade("round_to_bf16")

# %% [markdown] exercise="encode_fp8"
# title: Encode FP8
# minutes: 45
# difficulty: 4
# points: 7
# prerequisites: [decode, round_to_bf16]
# teaches: >-
#   how a number gets into a format with another bias, where subnormals are in daily use, and that
#   what happens to numbers that are too large is a choice.
# leaves out: the scale factor that FP8 tensors carry in practice, and the `fnuz` variants.
# off limits: ["cast:torch.float8_e4m3fn", "cast:torch.float8_e5m2", "cast:torch.float8_e4m3fnuz", "cast:torch.float8_e5m2fnuz"]
# forbids: "casts to a float of 8 bits; a bit pattern may be read as one"

# %% [markdown]
# Eight bits leave little to share out, so there are two formats. **`float8_e5m2`** is a `float16`
# with eight mantissa bits cut off, infinities and all. **`float8_e4m3fn`** trades range for one
# more mantissa bit, and then it wins some range back: it has no infinities, and uses nearly all
# patterns of the highest exponent for numbers. That is what `fn` says: *finite*, and *NaN* in one
# pattern per sign only.
#
# | | $E$ | $M$ | bias | smallest subnormal | largest | the pattern after that |
# |---|---|---|---|---|---|---|
# | `float8_e4m3fn` | 4 | 3 | 7 | $2^{-9}$ | 448, `0x7E` | `0x7F`, NaN |
# | `float8_e5m2` | 5 | 2 | 15 | $2^{-16}$ | 57344, `0x7B` | `0x7C`, infinity |
#
# The last eight positive patterns of each:

# %%
last = torch.arange(0x78, 0x80, dtype=torch.uint8)
for dtype in [torch.float8_e4m3fn, torch.float8_e5m2]:
    print(dtype, last.view(dtype).float().tolist())

# %% [markdown]
# What to do with 1000 in a format that ends at 448? One may **saturate**, that is, keep the largest
# number; or one may **overflow**, into infinity, or into NaN where there is none. It is a choice, and
# so a careful function takes it as an argument.
#
# **Predict.** What does PyTorch make of 1000.0 in `float8_e4m3fn`?

# %%
predict(
    ...,
    lambda: torch.tensor(1000.0).to(torch.float8_e4m3fn).float().item(),
)

# %% [markdown]
# And of a number that `float8_e5m2` cannot hold? The other thing:

# %%
print(torch.tensor([50000.0, 61439.0, 61440.0, 1e6]).to(torch.float8_e5m2).float().tolist())

# %% [markdown]
# Look: formats/round#format=e5m2&fp32=47700000 | 61,440 lies half way from 57,344, the largest
# number of `float8_e5m2`, to what would be the next: it becomes infinity. One step down, and it
# does not.
#
# One more trap. Who has a `bfloat16` encoder and an FP8 encoder for `bfloat16` may be tempted to
# chain them. Rounding twice is not the same as rounding once: the first step can land on a tie
# that was none.

# %%
x = torch.tensor(1.0625 + 2**-20)  # just above the middle of 1.0 and 1.125
print("at once:      ", x.to(torch.float8_e4m3fn).float().item())
print("over bfloat16:", x.to(torch.bfloat16).to(torch.float8_e4m3fn).float().item())

# %% [markdown]
# **Write `encode_fp8(x, dtype, saturate)`.** `x` is a `float32` tensor of any shape and layout,
# `dtype` is `torch.float8_e4m3fn` or `torch.float8_e5m2`. Return a `uint8` tensor of the same
# shape: the patterns.
#
# - Round to nearest, ties to even, once. The format's subnormals count like all its numbers.
# - Zeros, and what is rounded to zero, keep their sign.
# - Round as if the exponents went on. What is then beyond the largest number is **too large**, and
#   so is an infinity. With `saturate=True` it becomes the largest number, with its sign. With
#   `saturate=False` it becomes an infinity with its sign in `float8_e5m2`, and a NaN in
#   `float8_e4m3fn`.
# - A NaN becomes a NaN, in both modes.
#
# Wherever a NaN is due, any NaN pattern of the format will do, of either sign. Do not change `x`.
#
# <details><summary>Hint 1: normal numbers</summary>
#
# Take the sign off. Subtracting `(127 - bias) << 23` from the pattern of a `float32` moves its
# exponent to the new bias. Then round off the last `23 - M` bits as in `round_to_bf16`, and shift
# them out.
#
# </details>
# <details><summary>Hint 2: subnormals</summary>
#
# Below $2^{1-\text{bias}}$ the format's numbers are evenly spaced, and the pattern is simply *how
# many* smallest steps there are. So divide by the smallest step and round to a whole number;
# `torch.round` goes to even. If that rounds up to the smallest normal number, the pattern is
# right, too.
#
# </details>
# <details><summary>Hint 3: the largest</summary>
#
# Decide after rounding, by the pattern: is it above `0x7E` or `0x7B`? 449 is more than 448 and yet
# not too large. Infinity then needs no case of its own. NaN does.
#
# </details>


# %% solution="encode_fp8"
def encode_fp8(x: torch.Tensor, dtype: torch.dtype, saturate: bool) -> torch.Tensor:
    """Return the FP8 patterns of `x`, rounded to nearest, ties to even.

    x: float32, any shape
    dtype: torch.float8_e4m3fn or torch.float8_e5m2
    saturate: whether what is too large becomes the largest number
    returns: uint8, the same shape
    """
    ### BEGIN SOLUTION
    mantissa_bits, bias, largest = (3, 7, 0x7E) if dtype is torch.float8_e4m3fn else (2, 15, 0x7B)
    bits = x.view(torch.int32)
    magnitude = bits & 0x7FFFFFFF

    # Normal numbers: the exponent moves to the new bias, the mantissa is rounded off.
    drop = 23 - mantissa_bits
    moved = magnitude - ((127 - bias) << 23)
    odd = (moved >> drop) & 1
    normal = (moved + (1 << (drop - 1)) - 1 + odd) >> drop

    # Subnormal numbers: the pattern counts smallest steps. Scaling by a power of two is exact.
    small = x.abs() < 2.0 ** (1 - bias)
    steps = torch.where(small, x.abs(), 0.0) * 2.0 ** (bias - 1 + mantissa_bits)
    pattern = torch.where(small, torch.round(steps).to(torch.int32), normal)

    # The pattern after the largest number is infinity in one format and NaN in the other.
    pattern = torch.where(pattern > largest, largest if saturate else largest + 1, pattern)
    pattern = torch.where(x.isnan(), 0x7F, pattern)
    return (pattern | ((bits >> 24) & 0x80)).to(torch.uint8)
    ### END SOLUTION


# %% grade="encode_fp8"
grade("encode_fp8")

# %% [markdown] sitting="updates"
# question: Why do some weights stop moving?
# reached: >-
#   An update of less than half a step is rounded away, every time. Chance, a master copy or a
#   compensation buffer keeps what rounding drops.

# %% [markdown] exercise="round_mantissa"
# title: TF32, and any other mantissa
# minutes: 25
# difficulty: 3
# points: 6
# prerequisites: [round_to_bf16]
# teaches: >-
#   that TF32 is float32 with a shorter mantissa while a matrix product is computed, and how to
#   see on any machine what that costs.
# leaves out: how the products are summed, and how a given chip shortens its operands.
# off limits: []

# %% [markdown]
# **TF32** has the sign and the eight exponent bits of `float32`, and the ten mantissa bits of
# `float16`. That makes nineteen bits, and yet no tensor is ever stored in nineteen. TF32 is a *mode*:
# the operands of a matrix product lie in memory as `float32`, lose their last thirteen mantissa bits on
# the way into the multiplier, and the sums are `float32` again. (So say PyTorch's notes *Numerical
# accuracy* and *CUDA semantics* of the GPUs that have it.) There is no dtype of that name. There are
# switches, and they do not all stand the same way:

# %%
print("dtypes:", [name for name in dir(torch) if "tf32" in name or "tensorfloat" in name])
print("convolutions on CUDA may use TF32:   ", torch.backends.cudnn.allow_tf32)
print("matrix products on CUDA may use TF32:", torch.backends.cuda.matmul.allow_tf32)

# %% [markdown]
# What do thirteen bits matter? The number 1024.5 needs eleven mantissa bits:

# %%
text = f"{torch.tensor(1024.5).view(torch.int32).item():032b}"
print(text[0], text[1:9], text[9:19], text[19:])

# %% [markdown]
# Ten of them are all zero, the eleventh is set, and it is gone as soon as the operand has been
# shortened. Multiplying by the identity matrix then *changes* a number. This can be seen without
# any special hardware: shorten both operands, and multiply in `float32`. Here `float16` does the
# shortening, since its mantissa is just as long; it only lends itself to numbers that fit its
# small range.
#
# Look: formats/round#format=tf32&fp32=44801000 | 1024.5 on its way into ten bits of mantissa: a
# tie, and 1024 is the even one.

# %%
x = torch.tensor([1024.5])
print("float32:      ", (torch.eye(1) @ x).item())
print("ten bits each:", (torch.eye(1).half().float() @ x.half().float()).item())

# %% [markdown]
# **Predict.** And what becomes of 1025.5?

# %%
predict(
    ...,
    lambda: (torch.eye(1).half().float() @ torch.tensor([1025.5]).half().float()).item(),
)

# %% [markdown]
# For numbers of every size you have to shorten the mantissa yourself. It is the step of
# `round_to_bf16`, with another place to cut and with a result that stays a `float32`.
#
# **Write `round_mantissa(x, kept_bits)`.** `x` is a `float32` tensor of any shape and layout, and
# `kept_bits` a whole number from 1 to 23. Return a `float32` tensor of the same shape, in which
# every element is rounded to the nearest number whose last `23 - kept_bits` bits are zero; ties go
# to the one whose last kept bit is zero, too. So 10 gives TF32, 7 gives the numbers of `bfloat16`,
# and 23 changes nothing.
#
# Zeros keep their sign. Subnormals are rounded like all others: the rule is about the last bits of
# the pattern, whatever the exponent. From half a step beyond the largest number that can be kept,
# the result is infinite. Infinities stay, and a NaN stays a NaN; which one is up to you. Do not
# change `x`.
#
# <details><summary>Hint 1: the same addition</summary>
#
# With `drop = 23 - kept_bits`, half a step is `1 << (drop - 1)`. Which number took its place in
# `round_to_bf16`, where `drop` was 16?
#
# </details>
# <details><summary>Hint 2: zeros at the end</summary>
#
# After the addition the upper bits are right and the lower ones are rubbish. `& -(1 << drop)`
# clears the last `drop` bits of a whole number, positive or negative.
#
# </details>
# <details><summary>Hint 3: the two ends</summary>
#
# With 23 kept bits there is no half a step: `1 << -1` raises `ValueError`. And a NaN may turn into
# infinity when its last bits are cleared, or overflow in the addition. Keep both apart.
#
# </details>


# %% solution="round_mantissa"
def round_mantissa(x: torch.Tensor, kept_bits: int) -> torch.Tensor:
    """Round to a shorter mantissa, to nearest, ties to even.

    x: float32, any shape
    kept_bits: from 1 to 23
    returns: float32, the same shape; the last 23 - kept_bits bits of every number are zero
    """
    ### BEGIN SOLUTION
    drop = 23 - kept_bits
    if drop == 0:
        return x.clone()
    bits = x.view(torch.int32)
    odd = (bits >> drop) & 1
    # One less than half a step: the carry of a tie comes from `odd` alone. A carry out of the
    # mantissa goes into the exponent, where it belongs.
    rounded = (bits + (1 << (drop - 1)) - 1 + odd) & -(1 << drop)
    return torch.where(x.isnan(), x, rounded.view(torch.float32))
    ### END SOLUTION


# %% grade="round_mantissa"
grade("round_mantissa")

# %% [markdown] exercise="stochastic_round"
# title: Round by chance, and lose nothing on average
# minutes: 30
# difficulty: 3
# points: 6
# prerequisites: [round_to_bf16]
# teaches: >-
#   why small updates vanish in a coarse format, and how a coin that knows the distance keeps them
#   on average.
# leaves out: where good random bits come from, and how many of them are enough.
# off limits: []

# %% [markdown]
# A weight near 1 is to move by a thousandth, a hundred times. In `bfloat16` the next number after
# 1 is 1.0078125.
#
# **Predict.** Where does the weight end up?


# %%
def move(weight: torch.Tensor) -> float:
    for _ in range(100):
        weight = weight + 0.001
    return round(weight.item(), 4)


predict(
    ...,
    lambda: move(torch.tensor(1.0, dtype=torch.bfloat16)),
)

# %% [markdown]
# Rounding to nearest is the best that one rounding can do, and the worst that a hundred can: every
# update is less than half a step, and every one of them is lost. In `float32` the same loop arrives:

# %%
print(move(torch.tensor(1.0)))

# %% [markdown]
# **Stochastic rounding** leaves it to chance. A number between two neighbours goes to the upper one
# with a probability equal to the part of the way it has come: 1.001 lies 12.8% of the way from 1 to
# 1.0078125, and so it goes up in 12.8% of all cases. Each single result is worse than before, and
# the *mean* is exact. Over many updates the mean is what counts.
#
# Look: formats/round#format=bf16&fp32=3f8020c5 | 1.001 rounded to nearest: all that it has beyond 1
# is in the sixteen bits that are dropped.
#
# For `bfloat16` this part of the way is in plain sight: it is the lower half of the `float32`
# pattern, counted in steps of 1/65,536. Chance comes from outside, as sixteen random bits for each
# element. That makes the function deterministic, which is good for tests: also for ours, which
# tries them all.

# %%
generator = torch.Generator().manual_seed(0)
noise = torch.randint(0, 65_536, (4,), dtype=torch.int32, generator=generator)
print(noise.dtype, noise.shape, bool((noise >= 0).all()), bool((noise < 65_536).all()))
print(f"{torch.tensor(1.001).view(torch.int32).item() & 0xFFFF} / 65536")

# %% [markdown]
# **Write `stochastic_round(x, noise)`.** `x` is a `float32` tensor of any shape and layout, `noise`
# an `int32` tensor of the same shape with whole numbers from 0 to 65,535. Return a `bfloat16`
# tensor of the same shape. Each element depends on nothing but its own `x` and its own `noise`:
#
# - If the lower half of its pattern is `k`, it goes to the upper neighbour, the one with the larger
#   magnitude, for exactly `k` of the 65,536 values of `noise`. Which ones is up to you. For all
#   others it goes to the lower neighbour, its upper half.
# - So a number that `bfloat16` holds stays what it is, whatever the noise; that goes for both zeros
#   and for infinities, too.
# - Subnormals follow the same rule. So does what lies beyond the largest finite number: there the
#   upper neighbour is infinity.
# - A NaN stays a NaN, whichever, for every noise.
#
# Change neither `x` nor `noise`.
#
# <details><summary>Hint 1: compare</summary>
#
# For how many values of `noise` is `noise < k`? And with `>=`, on the other side?
#
# </details>
# <details><summary>Hint 2: or add</summary>
#
# Add the noise to the 32 bits. For how many values of `noise` does the lower half overflow into the
# upper one? It takes one addition and one shift, and `round_to_bf16` has shown why a carry into the
# exponent is right.
#
# </details>
# <details><summary>Hint 3: NaN</summary>
#
# A NaN whose set bits are all in the lower half has an upper half that means infinity; another may
# overflow. Give NaN a pattern of your own with `torch.where`.
#
# </details>


# %% solution="stochastic_round"
def stochastic_round(x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    """Round to one of the two neighbours, up with the probability that makes the mean exact.

    x: float32, any shape
    noise: int32 from 0 to 65,535, the shape of `x`
    returns: bfloat16, the same shape
    """
    ### BEGIN SOLUTION
    bits = x.view(torch.int32)
    # With k in the lower half the sum carries for noise >= 65,536 - k: for k of all values.
    rounded = (bits + noise) >> 16
    return torch.where(x.isnan(), 0x7FC0, rounded).to(torch.int16).view(torch.bfloat16)
    ### END SOLUTION


# %% grade="stochastic_round"
grade("stochastic_round")

# %% [markdown]
# ## Which format where, and why
#
# Nothing here is graded. It is a map of the family, with one thing to try for each branch.
#
# | format | bits | at home in | because |
# |---|---|---|---|
# | FP64 | 64 | science: solvers, long sums, small differences of large numbers | 16 digits |
# | FP32 | 32 | weights and optimizer state; the reference for the rest | range and 7 digits |
# | TF32 | 32 stored, 19 used | matrix products of a `float32` model | range of FP32, products of 11-bit numbers |
# | BF16 | 16 | training and inference of large models | range of FP32 in half the bytes |
# | FP16 | 16 | inference, on small devices too; training together with loss scaling | finer steps, little range |
# | FP8 | 8 | matrix products, each tensor with a scale | e4m3 for what needs steps, e5m2 for range |
# | INT8 | 8 | inference on servers and on small devices | whole-number arithmetic, even steps |
# | FP4, NF4, INT4 | 4 | weights at rest, in blocks with a scale each | an eighth of the bytes of FP32 |
#
# **Science.** Subtracting large numbers leaves what rounding has done to them. `float32` has seven
# digits, whatever the task:

# %%
for dtype in [torch.float32, torch.float64]:
    large = torch.tensor(1e8, dtype=dtype)
    print(dtype, ((large + 1) - large).item())

# %% [markdown]
# **Training** mixes formats: matrix products in sixteen bits, and in `float32` whatever must not
# lose small updates. `torch.autocast` casts operands on their way into an operator; the weights,
# and their gradients, stay what they were.

# %%
layer = torch.nn.Linear(4, 4)
inputs = torch.ones(2, 4)
with torch.autocast("cpu", dtype=torch.bfloat16):
    out = layer(inputs)
    loss = torch.nn.functional.mse_loss(out, inputs)
loss.backward()
print("weight  ", layer.weight.dtype)
print("product ", out.dtype)
print("loss    ", loss.dtype)
print("gradient", layer.weight.grad.dtype)

# %% [markdown]
# **Inference** need not accumulate updates, and can go lower. `int8` is not a small float: there is
# no sign bit beside a magnitude. It is **two's complement**, in which -1 is all ones, there is one
# negative number more than positive ones, and there is one zero. Its steps are even, and what they
# are worth is decided by a scale that is kept beside it.
#
# Look: formats/bits#format=int8&bits=ff | Minus one in `int8`, all ones: the first bit counts −128,
# and the others make up for 127 of it. Flip some.

# %%
print(torch.iinfo(torch.int8).min, torch.iinfo(torch.int8).max)
for value in [1, -1, 127, -127, -128]:
    pattern = torch.tensor(value, dtype=torch.int8).view(torch.uint8).item()
    print(f"{value:>5} {pattern:08b}")
print("127 + 1 =", (torch.tensor(127, dtype=torch.int8) + 1).item())

# %% [markdown]
# One network may use several formats. Up to version 10, TensorRT, NVIDIA's engine for inference, took
# for each layer the fastest of the formats that it was allowed. From version 11 on the network says
# each layer's format itself: by casts, and by nodes that quantize and dequantize. (By its guide
# *Migrating from TensorRT 10.x to 11.x*; not run here.)
#
# **Four bits** are sixteen values. Memory is addressed in bytes, so to save space two values must share
# one: `float4_e2m1fn_x2` says so in its name. (An element of `torch.int4` is one value, and takes a
# whole byte.) PyTorch 2.13 has names for such dtypes and hardly any operator. It does not even cast
# them:

# %%
for dtype in [torch.float4_e2m1fn_x2, torch.int4]:
    packed = torch.zeros(1, dtype=torch.uint8).view(dtype)
    try:
        packed.to(torch.float32)
        print(dtype, "can be cast")
    except NotImplementedError:
        print(dtype, "cannot be cast, at", packed.element_size(), "byte per element")

# %% [markdown]
# What such a value stands for, you have to say yourself. **INT4** is two's complement again.
# **FP4** in the variant e2m1 follows the table of `decode` with a bias of 1, except that the
# highest exponent is for numbers, too: eight magnitudes. **NF4** is no arithmetic at all but a list
# of sixteen numbers, chosen where normally distributed weights are frequent, and a pattern is an
# index into it (QLoRA, Dettmers et al., 2023). A list of that kind, from the quantiles of the
# normal distribution and scaled to end at 1, stands in the last line; the published one is built
# with more care and has a zero.

# %%
patterns = torch.arange(16)
int4 = torch.where(patterns < 8, patterns, patterns - 16)
exponent, mantissa = patterns[:8] >> 1, (patterns[:8] & 1) / 2
fp4 = torch.where(exponent > 0, 2.0 ** (exponent - 1) * (1 + mantissa), mantissa)
quantiles = torch.special.ndtri((patterns.double() + 0.5) / 16)
print("INT4", int4.tolist())
print("FP4 ", fp4.tolist(), "and their negatives")
print("like NF4", [round(value, 2) for value in (quantiles / quantiles.max()).tolist()])

# %% [markdown]
# Even steps, steps that double, steps that follow the data: with so few values it matters most
# where one puts them.

# %% [markdown] exercise="sgd_step"
# title: A BF16 weight that keeps learning
# minutes: 35
# difficulty: 3
# points: 6
# short: true
# prerequisites: [round_to_bf16]
# teaches: >-
#   why a small update to a bfloat16 weight vanishes, and two ways to keep what rounding drops: a
#   float32 master copy and a compensation buffer.
# leaves out: stochastic rounding, momentum, and optimisers with state of their own.
# off limits: [torch.optim.SGD, torch.optim.sgd.sgd]

# %% [markdown]
# A step of gradient descent is $w \leftarrow w - \eta g$. The result has to be stored, and storing
# it in `bfloat16` rounds it. Near 1 the `bfloat16` numbers lie $2^{-7}$ apart above and $2^{-8}$
# apart below. An update of less than half that distance is rounded away, and the weight is the
# same as before. The next step starts from the same weight, and loses its update too.
#
# Look: formats/bits#format=bf16&bits=3f80 | Around 1 in `bfloat16`: the next number above is twice
# as far away as the next one below. Go on to 2, and the gaps have doubled.

# %%
for dtype in [torch.float32, torch.bfloat16]:
    weight = torch.nn.Parameter(torch.ones(1, dtype=dtype))
    optimizer = torch.optim.SGD([weight], lr=6e-4)
    for _ in range(100):
        weight.grad = torch.ones_like(weight)
        optimizer.step()
    print(f"{dtype!s:>15} after 100 steps: {weight.item():.3f}")

# %% [markdown]
# One hundred gradients of 1 arrived, and not one was used. No error, no warning: the loss curve
# just goes flat.
#
# **Predict.** The update $u = 2^k$ is subtracted from a `bfloat16` 1.0. What is the largest whole
# number $k$ for which the result is still 1.0?

# %%
one = torch.ones((), dtype=torch.bfloat16)
predict(..., lambda: max(k for k in range(-20, 0) if one - 2.0**k == one))

# %% [markdown]
# Computing the difference in `float32` does not help as long as nothing but the `bfloat16` weight
# survives the step. What rounding drops must be kept somewhere. There are two classic places:
#
# - a **master copy**: a `float32` twin of the weight takes all the updates, and the `bfloat16`
#   weight is a fresh rounding of it after every step;
# - a **compensation buffer**: a tensor that holds what the weight still owes, because it was
#   rounded off. It is added to the next update. Kahan described this for sums; here the sum is the
#   weight.
#
# This is what a compensation buffer sees in the first four steps, with the debt kept in
# `float32`:

# %%
weight, debt = torch.ones((), dtype=torch.bfloat16), torch.zeros(())
for step in range(4):
    wanted = weight.float() + debt - 6e-4
    weight = wanted.to(torch.bfloat16)
    debt = wanted - weight.float()
    print(f"step {step + 1}: wanted {wanted:.4f}, stored {weight:.4f}, owes {debt:.4f}")

# %% [markdown]
# **Write `sgd_step(weight, grad, lr, state)`.** `weight` is a `bfloat16` parameter of any shape and
# layout, `grad` a `bfloat16` tensor of the same shape, `lr` a Python number. `state` is `None` at
# the first call, and after that what your previous call for this weight returned.
#
# - Change `weight` **in place**: write into the memory that it already has.
# - Return the state for the next call: `None`, or **one tensor** of the weight's shape with at most
#   four bytes per element. All that you need to know later must be in the numbers of `weight` and in
#   `state`: we may go on with these two alone, in another process.
# - After up to 200 calls, in which a weight loses at most half of its size, each weight must lie
#   within **one step of `bfloat16`** of $w_0 - \eta \sum g$, as wide as a step is there. Half a step
#   is the price of storing it in `bfloat16`; the other half leaves room for a buffer that is itself
#   rounded. (On longer ways the roundings of such a buffer add up to more.)
# - Leave `grad` alone.
#
# Nobody else changes `weight` between your calls. Autograd is switched off for you.
#
# <details><summary>Hint 1: which tensor must be exact?</summary>
#
# Something that lives from one call to the next must tell $w - 0.0006$ from $w$. A `bfloat16` copy
# of the weight cannot. What can, in four bytes or less?
#
# </details>
# <details><summary>Hint 2: the first call</summary>
#
# When `state` is `None`, make it: a `float32` copy of the weight, or zeros, since nothing is owed
# yet. Then do in every call the same.
#
# </details>
# <details><summary>Hint 3: what is owed</summary>
#
# With a buffer, read the weight back after you have written it. What is owed is what you wanted
# to store minus what you find. With a master copy, never read the weight at all: it would bring
# its rounding into the copy.
#
# </details>


# %% solution="sgd_step"
@torch.no_grad()
def sgd_step(
    weight: torch.Tensor, grad: torch.Tensor, lr: float, state: torch.Tensor | None
) -> torch.Tensor | None:
    """Take one step of gradient descent that loses nothing. Changes `weight` in place.

    weight, grad: bfloat16, the same shape
    state: None at first, then what the last call returned
    returns: the next call's state, of the weight's shape, at most 4 bytes per element
    """
    ### BEGIN SOLUTION
    master = weight.float() if state is None else state
    # The copy is read and written in float32 alone. Only what is rounded for storage goes to the
    # weight; nothing comes back from there.
    master = master - lr * grad.float()
    weight.copy_(master)
    return master
    ### END SOLUTION


# %% grade="sgd_step"
grade("sgd_step")

# %% [markdown] sitting="small-numbers"
# question: Why does a sum stop growing, and a gradient vanish?
# reached: >-
#   Next to a large total a small number is less than half a step; below the smallest subnormal
#   there is nothing at all. The lost part of a sum can be computed exactly, and a scaled loss
#   lifts gradients back into range.

# %% [markdown] exercise="compensated_sum"
# title: A sum that does not stick
# minutes: 35
# difficulty: 3
# points: 6
# prerequisites: [decode]
# teaches: >-
#   why long sums stop growing, how to compute the error of an addition exactly, and what a
#   compensated sum does with it.
# leaves out: infinities, NaN, and sums that overflow on their way.
# off limits: ["aten:sum", "aten:mean", "aten:cumsum", "aten:nansum", "aten:view.dtype", "cast:torch.float64", "cast:torch.complex128", torch.Tensor.double, torch.Tensor.item, torch.Tensor.tolist, torch.Tensor.__float__, torch.Tensor.__int__, torch.Tensor.numpy, torch.Tensor.__array__, math.fsum]
# forbids: "sums that are there already, wider floats, bit patterns, and Python's numbers in place of tensors"

# %% [markdown]
# A running total grows, and the steps between neighbouring numbers grow with it. Once the steps
# are twice as wide as what is added, the total no longer moves.
#
# Look: formats/round#format=bf16&fp32=43808000 | 256 + 1 in `bfloat16`: 257 lies half way from 256
# to 258, and 256 is even. Nothing was added.

# %%
for dtype in [torch.bfloat16, torch.float16]:
    total = torch.zeros((), dtype=dtype)
    for _ in range(5000):
        total = total + 1
    print(f"{dtype!s:>15}: 5000 ones add up to {total.item():.0f}")

# %% [markdown]
# PyTorch's own `sum` knows this. For 16-bit inputs it keeps its running totals in `float32` and rounds
# once, at the end (`cascade_sum` in `aten/src/ATen/native/cpu/SumKernel.cpp`). What decides is the
# dtype of the **accumulator**, not that of the input.

# %%
ones = torch.ones(5000, dtype=torch.bfloat16)
print(ones.sum(dtype=torch.float32).item(), ones.sum().item())
print(torch.tensor(5000.0).to(torch.bfloat16).item())

# %% [markdown]
# The second number is the first one, rounded to `bfloat16`, where the steps are 32 wide: the last line
# rounds it once. A wider accumulator only moves the wall.
#
# **Predict.** Ones are added one by one to a `float32` total that starts at zero. At which value
# $2^k$ does it stop? Write the exponent $k$.

# %%
predict(
    ...,
    lambda: next(k for k in range(64) if torch.tensor(2.0**k) + 1 == torch.tensor(2.0**k)),
)

# %% [markdown]
# Here is the remarkable part: what an addition loses is itself a floating-point number, and two
# more operations of the same precision compute it **exactly**. Let $t$ be the rounded sum of $s$
# and $x$, and let $|s| \ge |x|$. Then $t - s$ is the part of $x$ that arrived, and $x - (t - s)$ is
# the part that was lost.

# %%
s, x = torch.tensor(2.0**24), torch.tensor(1.0)
t = s + x
print(f"t = {t:.0f}, arrived: {t - s:.0f}, lost: {x - (t - s):.0f}")
s, x = torch.tensor(2.0**24), torch.tensor(3.0)
t = s + x
print(f"t = {t:.0f}, arrived: {t - s:.0f}, lost: {x - (t - s):.0f}")

# %% [markdown]
# If $|s| < |x|$ the two change places. A **compensated sum** collects the losses in a second total
# and adds it at the end. Kahan's original feeds the loss into the next term instead and never asks
# which of the two is larger; Neumaier asks.
#
# **Write `compensated_sum(x)`.** `x` has shape `(n, columns)` and dtype `float32` or `bfloat16`;
# either number may be zero. Return the sum of each column: a `float32` tensor of shape
# `(columns,)`. All arithmetic is done in `float32`. Every result must lie within
#
# $$2^{-23}\,|S| + (n \cdot 2^{-24})^2 \sum |x_i|$$
#
# of the exact sum $S$ of its column. The first term is the price of one rounding. The second is
# what the second total loses in turn, and it stays tiny even where $S$ is almost nothing because
# large terms cancel. The sum over the columns runs in parallel, so work with rows: whole tensors,
# one step per row.
#
# <details><summary>Hint 1: two totals</summary>
#
# Keep `total` and `lost`, both `float32` of shape `(columns,)`. For each row: add, find out what
# the addition lost, add that to `lost`. At the end return `total + lost`.
#
# </details>
# <details><summary>Hint 2: which one is larger</summary>
#
# Columns differ. `torch.where(total.abs() >= row.abs(), a, b)` picks for each column; compute both.
#
# </details>
# <details><summary>Hint 3: the input's dtype</summary>
#
# `bfloat16` values are `float32` values. Convert each row before the first addition:
# `bfloat16 + bfloat16` has been rounded to `bfloat16` before you see it.
#
# </details>


# %% solution="compensated_sum"
def compensated_sum(x: torch.Tensor) -> torch.Tensor:
    """Sum each column in float32, and lose nothing on the way.

    x: float32 or bfloat16, (n, columns)
    returns: float32, (columns,)
    """
    ### BEGIN SOLUTION
    total = torch.zeros(x.shape[1])
    lost = torch.zeros(x.shape[1])
    for row in x.float():
        new = total + row
        # The larger of the two keeps its leading bits in `new`; so the difference with it is
        # exact, and shows how much of the smaller one arrived.
        lost += torch.where(
            total.abs() >= row.abs(),
            row - (new - total),
            total - (new - row),
        )
        total = new
    return total + lost
    ### END SOLUTION


# %% grade="compensated_sum"
grade("compensated_sum")

# %% [markdown] exercise="loss_scale_step"
# title: Save the small gradients
# minutes: 30
# difficulty: 2
# points: 6
# short: true
# parameters:
#   grow: {public: 2, among: [4, 8], says: "a scale that grows {{grow}}-fold"}
#   shrink: {public: 2, among: [4, 8, 16], says: "one that shrinks to 1/{{shrink}}"}
# prerequisites: [decode]
# teaches: >-
#   why float16 gradients vanish, how scaling the loss saves them, and how a scaler finds the scale
#   by itself.
# leaves out: autocast, gradient clipping, and one scale per optimiser.
# off limits: [torch.amp.GradScaler, "aten:_amp_update_scale_", "aten:_amp_foreach_non_finite_check_and_unscale_"]
# forbids: "PyTorch's own loss scaling"

# %% [markdown]
# `float16` ends at $2^{-24}$, about $6 \cdot 10^{-8}$. Gradients are often smaller. They
# **underflow**: what arrives is zero, and the weight does not learn. The cure is old and cheap.
# Multiply the *loss* by a large scale before the backward pass. By the chain rule every gradient is
# multiplied by it too, and stays in range. Afterwards divide by the scale, in `float32`, which has
# room for the small numbers.
#
# Look: formats/round#format=fp16&fp32=322bcc77 | 0.00000001 on its way into `float16`: less than
# half of the smallest number, so a zero arrives. Choose a larger one.
#
# Here the true gradient is $10^{-8}$:


# %%
def gradient(scale):
    """Return the float16 gradient of a scaled loss, and what it is worth in float32."""
    weight = torch.ones((), dtype=torch.float16, requires_grad=True)
    factor = torch.tensor(1e-4, dtype=torch.float16)
    loss = (weight * factor * factor).float()
    (loss * scale).backward()
    return weight.grad, weight.grad.float() / scale


for scale in [1, 1024, 2.0**15, 2.0**20]:
    got, unscaled = (value.item() for value in gradient(scale))
    print(f"scale {scale:>9.0f}: float16 {got:>9.3g}, divided by the scale {unscaled:.3g}")

# %% [markdown]
# A scale of 1 is too small and gives zero; $2^{20}$ is too large and gives infinity. That is the
# scale itself: the backward pass brings it into `float16` first, which ends at 65504, and multiplies
# by the small factors afterwards.
#
# **Predict.** What is the smallest whole number $k$ for which the scale $2^k$ gives a gradient
# other than zero?

# %%
predict(..., lambda: next(k for k in range(20) if gradient(2.0**k)[0] != 0))

# %% [markdown]
# Nobody knows the right scale beforehand, and it drifts while a network trains. **Dynamic loss
# scaling** feels for it. Too large shows at once: some gradient is infinite, or a NaN. Too small
# shows nowhere, so from time to time it tries a larger one. This is the rule of
# `torch.amp.GradScaler` with `growth_factor={{grow}}` and `backoff_factor=1/{{shrink}}`:
#
# - If any gradient holds an infinity or a NaN: throw the whole step away, divide the scale by
#   {{shrink}}, and start counting anew.
# - Otherwise the step counts as good. When `interval` good steps have come in a row, multiply
#   the scale by {{grow}} and start counting anew.
#
# A scale that is a power of two changes the exponents alone, as long as nothing leaves the range of
# normal numbers. Scaling then rounds nothing.
#
# **Write `loss_scale_step(grads, scale, streak, interval)`.** `grads` is a list of `float16`
# tensors of any shapes: the gradients of the scaled loss. `scale` is a `float`, a power of two.
# `streak` is the number of good steps since the count last started, less than `interval`. Return
# three things:
#
# 1. the list of the unscaled gradients, in `float32` and with nothing lost, in the same order and
#    of the same shapes; or `None` if the step must be skipped;
# 2. the new scale, a `float`;
# 3. the new streak, an `int`.
#
# Change none of the gradients. The function keeps nothing between calls: all it needs comes in.
#
# <details><summary>Hint 1: where to divide</summary>
#
# The small numbers fit into `float32` and not into `float16`. Which comes first, the conversion or
# the division? And which scale were these gradients made with?
#
# </details>
# <details><summary>Hint 2: finding an overflow</summary>
#
# `torch.isfinite` is false for both infinities and for NaN. One bad element in one tensor spoils
# the step, because all gradients come from the same backward pass.
#
# </details>
# <details><summary>Hint 3: counting</summary>
#
# This step counts too: with `interval` 3 and `streak` 2, a good step is the third. With `interval`
# 1 every good step makes the scale grow. And when it has grown the count is back at zero.
#
# </details>


# %% solution="loss_scale_step"
def loss_scale_step(
    grads: list[torch.Tensor], scale: float, streak: int, interval: int
) -> tuple[list[torch.Tensor] | None, float, int]:
    """Unscale the gradients, or skip the step; and say which scale comes next.

    grads: float16, any shapes, of a loss that was multiplied by `scale`
    returns: float32 gradients or None, the new scale, the new streak
    """
    ### BEGIN SOLUTION
    # Element by element: a sum of large finite gradients may itself overflow.
    if not all(bool(grad.isfinite().all()) for grad in grads):
        return None, scale / {{shrink}}, 0
    unscaled = [grad.float() / scale for grad in grads]
    if streak + 1 == interval:
        return unscaled, scale * {{grow}}, 0
    return unscaled, scale, streak + 1
    ### END SOLUTION


# %% grade="loss_scale_step"
grade("loss_scale_step")

# %% [markdown] sitting="eight-bits"
# question: How does a whole number stand for a real one?
# reached: >-
#   By agreement: a scale and a zero point. Codes of different agreements cannot be added, nor
#   even laid side by side, before they are brought to one.

# %% [markdown] exercise="quantize"
# title: Eight bits for a range
# minutes: 35
# difficulty: 3
# points: 5
# short: true
# prerequisites: [decode]
# teaches: >-
#   affine quantization: a scale and a zero point chosen by minimum and maximum, per tensor and per
#   channel, such that 0.0 is exact.
# leaves out: symmetric schemes, histograms and other ways to choose the range, INT4.
# off limits: [torch.quantize_per_tensor, torch.quantize_per_channel, torch.quantize_per_tensor_dynamic, torch.fake_quantize_per_tensor_affine, torch.fake_quantize_per_channel_affine, torch.ao.quantization.MinMaxObserver, torch.ao.quantization.PerChannelMinMaxObserver]
# forbids: "PyTorch's own quantizers and observers"

# %% [markdown]
# `int8` has no exponent and no mantissa. It is a whole number from −128 to 127, and it stands for a
# real number only by agreement: a **scale** $s$ and a **zero point** $z$.
#
# $$\hat x = s \cdot (q - z) \qquad\qquad q = \mathrm{clamp}\big(\mathrm{round}(x / s) + z,\; -128,\; 127\big)$$
#
# The left formula reads, the right one writes. They are easy to mix up: $s \cdot (x - z)$ is often
# called quantization, and it is the *reading* formula with the wrong letter.
#
# Look: formats/bits#format=int8&bits=ce | The code −50. Neighbours are one step apart everywhere;
# what a step is worth, no bit says. Scale and zero point do.

# %%
x = torch.tensor([-1.0, 0.0, 0.264, 1.5, 1.6])
read_back = torch.fake_quantize_per_tensor_affine(x, 0.01, -28, -128, 127)
print("x        ", [round(value, 3) for value in x.tolist()])
print("read back", [round(value, 3) for value in read_back.tolist()])

# %% [markdown]
# Draw: show_curves({name: [(at / 50, f(torch.tensor([at / 50])).item()) for at in range(-75,
# 101)] for name, f in (("read back", lambda x: torch.fake_quantize_per_tensor_affine(x, 0.01,
# -28, -128, 127)), ("x", lambda x: x))}, "x", "") | From −1 to 1.55 the two are one line, up to
# half a step. Beyond, the code has an end.
#
# That function writes and reads in one go. The steps between neighbours are $s$ everywhere: a float
# has a *relative* precision, a quantized number an *absolute* one. The largest number that this
# pair stands for is $0.01 \cdot (127 + 28) = 1.55$. All above is clamped to it.
#
# The range is spread over the 255 steps between −128 and 127. **Min–max calibration** takes it from
# the data:
#
# - $lo = \min(x_{\min}, 0)$ and $hi = \max(x_{\max}, 0)$. Zero is always in the range.
# - $s = (hi - lo) / 255$, but at least `torch.finfo(torch.float32).eps`, so that a tensor of zeros
#   does not divide by zero.
# - $z = -128 - \mathrm{round}(lo / s)$: what stands for $lo$ lands on −128.
#
# The zero point is a whole number, and so $x = 0$ gives exactly $q = z$, which reads as exactly
# 0.0. That matters more than it seems: padding, masks and the output of a ReLU are full of zeros.
#
# **Predict.** A ReLU's output runs from 0.0 to 5.1. Which zero point does it get?


# %%
def zero_point_of(x):
    """Ask PyTorch's own observer."""
    from torch.ao.quantization import MinMaxObserver

    observer = MinMaxObserver(dtype=torch.qint8, qscheme=torch.per_tensor_affine)
    observer(x)
    return observer.calculate_qparams()[1].item()


predict(..., lambda: zero_point_of(torch.tensor([0.0, 2.3, 5.1])))

# %% [markdown]
# The rows of a weight matrix often have very different ranges. A single scale must serve the
# widest, and leaves the others a handful of steps. **Per channel** means: a scale and a zero point
# for each index along one axis.
#
# **Write `quantize(x, axis)`.** `x` is a `float32` tensor of any shape and layout with at least one
# element, all finite. Return `(q, scale, zero_point)`, by the formulas above with `round` to
# nearest, ties to even:
#
# - `q`: `int8`, the shape of `x`
# - `scale`: `float32`, and `zero_point`: `int32`. If `axis` is `None`, both have shape `()`. Else
#   `axis` is a dimension, counted from 0, and both have shape `(x.shape[axis],)`: one pair for each
#   index along that axis.
#
# You may round before or after you add $z$. Only ties can tell the difference, and we look at ties
# only where the zero point is even, which makes the two the same.
#
# <details><summary>Hint 1: both cases at once</summary>
#
# `torch.aminmax` has no list of dimensions; `x.amin(dims)` and `x.amax(dims)` have. Per channel,
# the dimensions to reduce are all except `axis`. With `keepdim=True` the results broadcast against
# `x` by themselves. If `x` has no other dimension, nothing is left to reduce; but to `amin` an empty
# list means *all* dimensions.
#
# </details>
# <details><summary>Hint 2: a range without zero</summary>
#
# If all values are positive, the range starts at zero all the same: `.clamp(max=0)` on the minimum,
# `.clamp(min=0)` on the maximum.
#
# </details>
# <details><summary>Hint 3: clamp before you convert</summary>
#
# `lo` and `hi` are rounded each on its own, so $q$ can come out as 128. Converting 128 to `int8`
# wraps around to −128: the largest value becomes the smallest.
#
# </details>


# %% solution="quantize"
def quantize(x: torch.Tensor, axis: int | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Quantize to int8 with scale and zero point from minimum and maximum.

    x: float32, any shape but empty
    axis: None for one scale, or the dimension along which each index has its own
    returns: q int8 like x; scale float32 and zero_point int32, () or (x.shape[axis],)
    """
    ### BEGIN SOLUTION
    dims = [dim for dim in range(x.dim()) if dim != axis]
    # Zero belongs to the range, whatever the data: it must be exact.
    low = x.amin(dims, keepdim=True).clamp(max=0) if dims else x.clamp(max=0)
    high = x.amax(dims, keepdim=True).clamp(min=0) if dims else x.clamp(min=0)
    scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
    zero_point = -128 - torch.round(low / scale)
    # In float32 these whole numbers are exact; int8 comes last, when all of them fit.
    q = (torch.round(x / scale) + zero_point).clamp(-128, 127).to(torch.int8)
    shape = () if axis is None else (x.shape[axis],)
    return q, scale.reshape(shape), zero_point.to(torch.int32).reshape(shape)
    ### END SOLUTION


# %% grade="quantize"
grade("quantize")

# %% [markdown] exercise="quantized_add"
# title: Add two quantized tensors
# minutes: 25
# difficulty: 3
# points: 5
# prerequisites: [quantize]
# teaches: >-
#   that codes cannot be added: each comes with a scale and a zero point of its own, and the result
#   has a third pair.
# leaves out: the fixed-point multipliers that replace the scales' ratios on integer hardware.
# off limits: [quantized]

# %% [markdown]
# A residual connection adds two tensors, $x + y$. Quantized, each has a scale and a zero point of
# its own, and calibration has given the sum a third pair. The codes alone say nothing: 50 may stand
# for 1.0 in one tensor and for 1.6 in the other.

# %%
codes_x, codes_y = torch.tensor([50, -35, 10]), torch.tensor([50, 60, -90])
real_x, real_y = 0.02 * (codes_x - 0), 0.04 * (codes_y - 10)
print("x stands for  ", [round(value, 2) for value in real_x.tolist()])
print("y stands for  ", [round(value, 2) for value in real_y.tolist()])
print("x + y is      ", [round(value, 2) for value in (real_x + real_y).tolist()])
print("sum of codes  ", (codes_x + codes_y).tolist())

# %% [markdown]
# Draw: show_curves({"x: 0.02 · code": [(code, 0.02 * code) for code in (-128, 127)], "y: 0.04 ·
# (code − 10)": [(code, 0.04 * (code - 10)) for code in (-128, 127)]}, "code", "stands for") | Two
# tensors, two lines. Only the code 20 stands for the same in both.
#
# There is no common factor that turns the last line into the line above it. Write the three
# readings $s\,(q - z)$ into $x + y$ and solve for the code of the sum:
#
# $$q = z + \mathrm{round}\Big(\frac{s_x}{s}\,(q_x - z_x) + \frac{s_y}{s}\,(q_y - z_y)\Big)$$
#
# Both inputs lose their zero point, both are rescaled, and the sum is rounded once. Formulas that
# rescale a single input, or that take one scale for all, are right only where the pairs happen to
# be equal.
#
# **Predict.** The sum above is stored with scale 0.1 and zero point −20. Which code does its first
# element get?

# %%
predict(..., lambda: round((0.02 * (50 - 0) + 0.04 * (50 - 10)) / 0.1) - 20)

# %% [markdown]
# **Write `quantized_add(x, y, scale, zero_point)`.** `x` and `y` are triples
# `(q, scale, zero_point)` of an `int8` tensor, a `float` and an `int`; both tensors have the same
# shape. Return an `int8` tensor of that shape: for each element the code that stands for the number
# **nearest to the exact sum**, under the given `scale` and `zero_point`; −128 or 127 where the sum
# lies beyond the last code. We look at no sum within a hundredth of a step of a tie, and at none for
# which `float32` is not precise enough.
#
# <details><summary>Hint 1: room for the differences</summary>
#
# $q_x - z_x$ runs from −255 to 255. Which dtype must `q` have before you subtract?
#
# </details>
# <details><summary>Hint 2: one rounding</summary>
#
# Rounding each rescaled input on its own is off by up to a whole step. Add first, then round.
#
# </details>
# <details><summary>Hint 3: one clamp</summary>
#
# Clamp at the very end. A large $x$ and a large negative $y$ may each lie beyond the result's
# range, and their sum well within it.
#
# </details>


# %% solution="quantized_add"
Quantized = tuple[torch.Tensor, float, int]


def quantized_add(x: Quantized, y: Quantized, scale: float, zero_point: int) -> torch.Tensor:
    """Add two quantized tensors.

    x, y: (q, scale, zero_point), q int8 of the same shape
    returns: the codes of x + y under scale and zero_point, int8, the same shape
    """
    ### BEGIN SOLUTION
    total = 0.0
    for q, its_scale, its_zero in (x, y):
        # float32 holds every difference of codes exactly; int8 would wrap around
        total = total + (its_scale / scale) * (q.float() - its_zero)
    return (torch.round(total) + zero_point).clamp(-128, 127).to(torch.int8)
    ### END SOLUTION


# %% grade="quantized_add"
grade("quantized_add")

# %% [markdown] exercise="quantized_concat"
# title: Concatenate quantized tensors
# minutes: 15
# difficulty: 2
# points: 5
# prerequisites: [quantized_add]
# teaches: >-
#   requantization: the same numbers under another scale and zero point, and why an operation
#   without any arithmetic still needs it.
# leaves out: choosing the output's range; copying without rounding where the pairs agree.
# off limits: [quantized]

# %% [markdown]
# Concatenation computes nothing. In floats it copies. Quantized, the parts come with different
# pairs of scale and zero point, and the result has room for one pair. So each part must be
# **requantized**: read with its own pair, written with the result's.
#
# $$q' = \mathrm{clamp}\Big(z' + \mathrm{round}\big(\tfrac{s}{s'}\,(q - z)\big),\; -128,\; 127\Big)$$
#
# Codes that were merely glued together stand for other numbers:

# %%
left, right = torch.tensor([100, -50]), torch.tensor([100, -50])
real = torch.cat([0.01 * (left - 0), 0.04 * (right - 20)])
glued = 0.01 * (torch.cat([left, right]) - 0)
print("the parts stand for       ", [round(value, 2) for value in real.tolist()])
print("glued, with left's pair   ", [round(value, 2) for value in glued.tolist()])

# %% [markdown]
# Draw: show_cells({name: [(f"{value:.2f}", place < 2 and "as before" or name) for place, value in
# enumerate(values.tolist())] for name, values in (("the parts", real), ("glued", glued))}, ["left
# 100", "left −50", "right 100", "right −50"]) | The codes are the same in both lines. The right
# part's numbers are not.
#
# **Predict.** What becomes of the right part's 100 when it is requantized to scale 0.05 and zero
# point 3?

# %%
predict(..., lambda: 3 + round(0.04 / 0.05 * (100 - 20)))

# %% [markdown]
# **Write `quantized_concat(parts, dim, scale, zero_point)`.** `parts` is a list of one or more
# triples `(q, scale, zero_point)` as before; their tensors differ in size at most along `dim`,
# which counts from 0. Return one `int8` tensor: the parts in order along `dim`, each element the
# code **nearest to the number it stood for**, under the given `scale` and `zero_point`; −128 or 127
# where the number lies beyond the last code. We look at nothing within a hundredth of a step of a
# tie.
#
# <details><summary>Hint 1: what is the same as before</summary>
#
# Adding rescaled two inputs and added them. Here each is rescaled, and none is added.
#
# </details>
# <details><summary>Hint 2: every part</summary>
#
# No part is special. One that already has the result's pair comes out unchanged by the same
# formula.
#
# </details>
# <details><summary>Hint 3: the range</summary>
#
# A part with a large scale can hold numbers that the result cannot. Clamp before you convert to
# `int8`.
#
# </details>


# %% solution="quantized_concat"
def quantized_concat(
    parts: list[tuple[torch.Tensor, float, int]], dim: int, scale: float, zero_point: int
) -> torch.Tensor:
    """Concatenate quantized tensors along dim.

    parts: (q, scale, zero_point) each, q int8
    returns: the codes of all parts under scale and zero_point, int8
    """
    ### BEGIN SOLUTION
    written = [
        torch.round((its_scale / scale) * (q.float() - its_zero)) + zero_point
        for q, its_scale, its_zero in parts
    ]
    return torch.cat(written, dim).clamp(-128, 127).to(torch.int8)
    ### END SOLUTION


# %% grade="quantized_concat"
grade("quantized_concat")

# %% [markdown] sitting="products"
# question: How does a coarse format give an accurate product?
# reached: >-
#   Products of coarse numbers are added in a wider format. And what one coarse number cannot
#   hold, three can.

# %% [markdown] exercise="int8_matmul"
# title: Multiply INT8 matrices
# minutes: 30
# difficulty: 3
# points: 5
# prerequisites: [quantized_add]
# teaches: >-
#   why int8 products need int32 accumulators, and how zero points are handled by hardware that
#   multiplies int8 and nothing else.
# leaves out: requantizing the result to int8, and one scale per channel.
# off limits: [products, "aten:_int_mm"]
# forbids: "operators that multiply matrices; the unit does it"

# %% [markdown]
# Converting all weights and activations to `int8` is not enough to run a network in `int8`. The
# product of two codes needs sixteen bits, and a sum of many products needs more. An `int8`
# result has eight, and wraps around in silence:

# %%
a = torch.full((1, 33), 100, dtype=torch.int8)
b = torch.full((33, 1), 100, dtype=torch.int8)
print("torch.mm     ", torch.mm(a, b).dtype, torch.mm(a, b).item())
print("the true sum ", 33 * 100 * 100)

# %% [markdown]
# **Predict.** A row of three times 100 is multiplied by a column of ones, by `torch.mm` in `int8`.
# What is the result?

# %%
row, ones = torch.full((1, 3), 100, dtype=torch.int8), torch.ones(3, 1, dtype=torch.int8)
predict(..., lambda: torch.mm(row, ones).item())

# %% [markdown]
# Draw: show_curves({name: [(n, f(n)) for n in range(1, 13)] for name, f in (("`torch.mm` in
# `int8`", lambda n: torch.mm(torch.full((1, n), 100, dtype=torch.int8), torch.ones(n, 1,
# dtype=torch.int8)).item()), ("the true sum", lambda n: 100 * n))}, "how many times 100", "sum")
# | The sum goes round and round, and only the first result is right.
#
# What one wants takes `int8` operands and adds into `int32`. PyTorch has it as `torch._int_mm`. Here is
# one that is easy to see through. It takes nothing but `int8`.

# %%
from collections.abc import Callable

Multiply = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def int8_unit(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply int8 matrices (m, k) and (k, n) into int32 (m, n)."""
    if a.dtype is not torch.int8 or b.dtype is not torch.int8:
        raise TypeError("The matrix unit takes int8 operands.")
    return (a.int()[:, :, None] * b.int()[None]).sum(1).int()


print("torch._int_mm", torch._int_mm(a, b).dtype, torch._int_mm(a, b).item())
print("the unit     ", int8_unit(a, b).dtype, int8_unit(a, b).item())

# %% [markdown]
# Now the zero points. What the codes stand for is proportional to $a - z_a$ and $b - z_b$, and we
# want
#
# $$C_{ij} = \sum_k (a_{ik} - z_a)(b_{kj} - z_b)$$
#
# But $a - z_a$ runs from −255 to 255 and is no `int8`: the unit will not take it. So multiply the
# codes as they are, and repair the result. Multiply out the brackets under the sum: one of the four
# terms is what the unit computes, and the other three are cheap.
#
# **Write `int8_matmul(a, a_zero, b, b_zero, multiply)`.** `a` is an `int8` tensor of shape
# `(m, k)`, `b` one of shape `(k, n)`, in any layout, with $m, k, n \ge 1$ and $k \le 4096$; the zero
# points are whole numbers from −128 to 127. `multiply` is a unit like the one above. Call it
# **exactly once**: all products of codes are its work. Return $C$, exact, as an `int32` tensor of shape
# `(m, n)`.
#
# <details><summary>Hint 1: the four terms</summary>
#
# $\sum a b \;-\; z_b \sum a \;-\; z_a \sum b \;+\; k\, z_a z_b$, all sums over $k$. Which of them
# depend on $i$, which on $j$, which on neither?
#
# </details>
# <details><summary>Hint 2: shapes</summary>
#
# The sum of a row of `a` belongs to a row of the result: shape `(m, 1)`. The sum of a column of `b`
# belongs to a column: shape `(1, n)`. Broadcasting does the rest.
#
# </details>
# <details><summary>Hint 3: exact to the last digit</summary>
#
# `a.sum(1)` of an `int8` tensor is an `int64` tensor: PyTorch widens sums of whole numbers. Stay
# with whole numbers. A `float32` holds them exactly only up to $2^{24}$, and $C$ goes beyond.
#
# </details>


# %% solution="int8_matmul"
def int8_matmul(
    a: torch.Tensor, a_zero: int, b: torch.Tensor, b_zero: int, multiply: Multiply
) -> torch.Tensor:
    """Multiply what two int8 matrices stand for, scales left aside.

    a: int8 (m, k); b: int8 (k, n); multiply: int8 matrices in, their int32 product out
    returns: int32 (m, n), the sum over k of (a - a_zero) * (b - b_zero)
    """
    ### BEGIN SOLUTION
    k = a.shape[1]
    rows = a.sum(1, keepdim=True)  # (m, 1), int64
    columns = b.sum(0, keepdim=True)  # (1, n), int64
    # Only the first term costs m * k * n multiplications. In a network b holds the weights, so that
    # its column sums are computed once and kept.
    product = multiply(a, b) - b_zero * rows - a_zero * columns + k * a_zero * b_zero
    return product.to(torch.int32)
    ### END SOLUTION


# %% grade="int8_matmul"
grade("int8_matmul")

# %% [markdown] exercise="matmul_bf16x3"
# title: FP32 accuracy from BF16 products
# minutes: 40
# difficulty: 4
# points: 5
# prerequisites: [round_to_bf16, int8_matmul]
# teaches: >-
#   that three bfloat16 numbers hold a float32 exactly, and which six of their nine products a
#   float32-accurate matrix product needs.
# leaves out: numbers so small or large that a piece or a product leaves the range.
# off limits: [products]
# forbids: "operators that multiply matrices; the unit does it"

# %% [markdown]
# A matrix unit for `bfloat16` adds in `float32`, but each operand has lost sixteen bits before the
# multiplication begins. This one adds exactly and rounds its result to `float32` once; so all that
# goes wrong below is due to the operands.


# %%
def bf16_unit(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply bfloat16 matrices (m, k) and (k, n) into float32 (m, n)."""
    if a.dtype is not torch.bfloat16 or b.dtype is not torch.bfloat16:
        raise TypeError("The matrix unit takes bfloat16 operands.")
    return (a.double()[:, :, None] * b.double()[None]).sum(1).float()


third, one = torch.tensor([[1 / 3]]), torch.ones(1, 1).bfloat16()
print(f"1/3 in float32:   {third.item():.9f}")
print(f"1/3 through it:   {bf16_unit(third.bfloat16(), one).item():.9f}")

# %% [markdown]
# **Predict.** 1024.5 is multiplied by 1 in such a unit. What comes out?

# %%
predict(..., lambda: bf16_unit(torch.tensor([[1024.5]]).bfloat16(), one).item())

# %% [markdown]
# The way out needs no new hardware. Round $x$ to `bfloat16` and call it $x_1$. What is left over,
# $x - x_1$, is exact in `float32`, because the leading bits cancel. Round that to $x_2$, and what
# is left over then to $x_3$. Each piece holds eight bits, a `float32` has 24:
#
# Draw: show_cells({name: [bool(int(value.item() * 2**place) % 2) for place in range(24)] for x in
# [torch.tensor(2.0).sqrt()] for first in [x.bfloat16().float()] for second in [(x -
# first).bfloat16().float()] for name, value in (("√2", x), ("piece 1", first), ("piece 2",
# second), ("piece 3", x - first - second))}, bare=True) | The 24 bits of √2 in float32, coloured
# where they are 1, and which piece has which.

# %%
rest = torch.tensor(1 / 3)
for number in (1, 2, 3):
    piece = rest.bfloat16().float()
    rest = rest - piece
    print(f"piece {number}: {piece.item():+.4e}, left over: {rest.item():+.4e}")

every = (torch.arange(0, 2**23, 7, dtype=torch.int32) | 0x3F800000).view(torch.float32)  # in [1, 2)
first = every.bfloat16().float()
second = (every - first).bfloat16().float()
left_over = every - first - second
print("largest second / first:", (second / first).abs().max().item() * 2**8, "/ 2^8")
print("exact in three pieces: ", bool((left_over.bfloat16().float() == left_over).all()))

# %% [markdown]
# Draw: show_cells({f"piece {i + 1} of A": [(f"2^−{8 * (i + j)}" if i + j else "1", min(i + j, 3))
# for j in range(3)] for i in range(3)}, [f"piece {j + 1} of B" for j in range(3)]) | How large
# each of the nine products is at most, beside the first.
#
# With $A = A_1 + A_2 + A_3$ and $B = B_1 + B_2 + B_3$ the product $AB$ falls into nine products of
# `bfloat16` matrices. Each piece is at most $2^{-8}$ times the one before it, in most cases much
# less. So the nine differ in size by far, and three of them are too small to matter. The other six
# you need.
#
# Look: formats/round#format=bf16&fp32=40490fdb | Pi on its way into `bfloat16`: sixteen bits are
# cut off, and what they are worth is left for the second piece.
#
# **Write `matmul_bf16x3(a, b, multiply)`.** `a` is a `float32` tensor of shape `(m, k)`, `b` one of
# shape `(k, n)`, in any layout, with $m, k, n \ge 1$. Elements are zero or between $2^{-40}$ and
# $2^{40}$ in magnitude. `multiply` is a unit like the one above. Return the product in `float32`,
# with an error of at most
#
# $$2^{-20} \sum_k |a_{ik}|\,|b_{kj}|$$
#
# in every element. All multiplying is the unit's work, and it may do no more than **six times** the
# work of one plain product: the $m \cdot k \cdot n$ of all its calls add up to at most $6\,mkn$.
#
# Where the bound comes from, in parts of $\sum |a|\,|b|$: the three smallest products, left out, are
# below $2^{-22}$ together; the unit rounds each result by $2^{-24}$ at most, and adding the six rounds
# five times more.
#
# <details><summary>Hint 1: splitting</summary>
#
# Subtract in `float32`: `rest = rest - piece.float()`. In `bfloat16` the difference would be
# rounded away.
#
# </details>
# <details><summary>Hint 2: which six</summary>
#
# The size of $A_i B_j$ goes down with $i + j$. There is one product with $i + j = 2$. Go on until
# you have six.
#
# </details>
# <details><summary>Hint 3: in which order</summary>
#
# Add in `float32`, and begin with the smallest: what would be rounded off beside a large number
# still counts among small ones.
#
# </details>


# %% solution="matmul_bf16x3"
def matmul_bf16x3(a: torch.Tensor, b: torch.Tensor, multiply: Multiply) -> torch.Tensor:
    """Multiply float32 matrices on a bfloat16 unit, as accurately as float32 can tell.

    a: float32 (m, k); b: float32 (k, n); multiply: bfloat16 matrices in, float32 product out
    returns: float32 (m, n)
    """

    ### BEGIN SOLUTION
    def pieces(x: torch.Tensor) -> list[torch.Tensor]:
        found = []
        for _ in range(3):
            piece = x.bfloat16()
            x = x - piece.float()  # exact: the leading bits cancel
            found.append(piece)
        return found

    a1, a2, a3 = pieces(a)
    b1, b2, b3 = pieces(b)
    total = multiply(a1, b3) + multiply(a3, b1) + multiply(a2, b2)  # 2**-16 of the whole
    total = total + (multiply(a1, b2) + multiply(a2, b1))  # 2**-8
    return total + multiply(a1, b1)
    ### END SOLUTION


# %% grade="matmul_bf16x3"
grade("matmul_bf16x3")

# %% [markdown] sitting="integers"
# question: How does a layer run without floats?
# reached: >-
#   It adds products of codes in int32, where the bias already is. What is left of the three scales
#   is one ratio, and that is a multiplication of whole numbers and a shift.

# %% [markdown] exercise="int_conv2d"
# title: Convolve in whole numbers
# minutes: 60
# difficulty: 4
# points: 8
# prerequisites: [int8_matmul]
# teaches: >-
#   how a quantized layer runs on hardware without floats: padding that stands for 0.0, the zero
#   point folded into the bias, int32 accumulators, and a ratio of scales as multiplier and shift.
# leaves out: strides, dilation and groups; ratios of 1 and more; zero points of weights.
# off limits: [quantized]
# forbids: "PyTorch's own quantized tensors, and floats: no tensor on the way may hold them"

# %% [markdown]
# A layer takes codes and hands on codes. So far the way from one to the other led through floats.
# Small chips have none, or slow ones. TensorFlow Lite, which runs on them, quantizes a convolution
# so that whole numbers are enough.
#
# | | dtype | a step is worth | 0.0 is |
# |---|---|---|--:|
# | activations $q_x$ | `uint8` | $s_x$ | $z_x$ |
# | weights $q_w$ | `int8` | $s_w$, of each output channel | 0 |
# | bias $b$, accumulator $A$ | `int32` | $s_x s_w$ | 0 |
# | result $q_y$ | `uint8` | $s_y$ | $z_y$ |
#
# Weights are **symmetric**: their zero point is 0. Write the readings into the sum, and solve for
# the code of the result:
#
# $$q_y = z_y + \mathrm{round}\Big(\frac{s_x s_w}{s_y}\,A\Big) \qquad\qquad A = \sum q_w\,(q_x - z_x) + b$$
#
# The **accumulator** $A$ is a whole number, and counts in units of $s_x s_w$. The bias is added to
# it, so it is stored in the same unit: $b = \mathrm{round}(\text{bias} / (s_x s_w))$. Eight bits
# would not hold that. It gets 32, as $A$ does.
#
# Why 32? A code of `uint8` is 255 at most, one of `int8` −128 at least.

# %%
most = 255 * 128
for dtype in (torch.int16, torch.int32):
    print(f"{dtype}: room for {torch.iinfo(dtype).max // most:,} of the largest products")
print(f"a 3×3 kernel over 512 channels adds {3 * 3 * 512:,}")

# %% [markdown]
# Here is a unit that convolves codes, as fast hardware has it. It knows no zero point, and pads
# nothing.

# %%
import torch.nn.functional as F

Convolve = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def conv_unit(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Convolve uint8 (n, c, height, width) with int8 (o, c, rows, columns) into int32."""
    if x.dtype is not torch.uint8 or w.dtype is not torch.int8:
        raise TypeError("The unit takes uint8 activations and int8 weights.")
    return F.conv2d(x.int(), w.int())


# %% [markdown]
# **Padding** surrounds an image with 0.0. The unit gets codes, so the border must be a code too.
#
# Below is an image that is 0.0 everywhere: all of its codes are the zero point, 30. Convolved with
# a kernel of nine ones it is 0.0 again. In codes, each sum of nine is too large by 9 · 30, which is
# taken off.
#
# **Predict.** The image is padded with the code 0. What is left in the corner of the result, where
# it should be 0?


# %%
def padded_with(code):
    """Pad an image of 0.0 with a code, convolve it with ones, take the zero point off."""
    image = torch.full((1, 1, 4, 4), 30, dtype=torch.uint8)
    image = F.pad(image, [1, 1, 1, 1], value=code)
    return (conv_unit(image, torch.ones(1, 1, 3, 3, dtype=torch.int8)) - 9 * 30)[0, 0]


predict(..., lambda: padded_with(0)[0, 0].item())

# %% [markdown]
# Draw: show_cells({f"padded with {code}, row {at}": [(str(value), value and str(value)) for value
# in row] for code in (0, 30) for at, row in enumerate(padded_with(code).tolist())}) | The
# accumulators. The code 0 stands for 30 steps below 0.0, and all of the border shows it.
#
# The zero point is what stands for 0.0, so a border of zero points is right, and with it one number
# per channel takes the zero point off everywhere.
#
# What is left is the ratio $s_x s_w / s_y$. It is known when a network is converted, long before it
# runs. So it is written down as whole numbers then: a **multiplier** of 31 bits, and a **shift** to
# the right.


# %%
def fixed_point(ratio: float) -> tuple[int, int]:
    """Write a ratio below 1 as multiplier / 2**31 / 2**shift. Done once, in floats."""
    fraction, exponent = math.frexp(ratio)  # ratio = fraction * 2**exponent, fraction from 0.5
    multiplier = round(fraction * 2**31)
    if multiplier == 2**31:  # rounded up to 1.0: one bit too many
        multiplier, exponent = 2**30, exponent + 1
    return multiplier, -exponent


for ratio in (0.02 * 0.005 / 0.1, 0.02 * 0.0003 / 0.1, 0.75):
    multiplier, shift = fixed_point(ratio)
    product = 12345 * multiplier
    scaled = product / 2 ** (31 + shift)
    print(f"12345 · {ratio:.5f} = 12345 · {multiplier} / 2^31 / 2^{shift} = {scaled:.3f}")
    print(f"    by way of {product.bit_length()} bits")

# %% [markdown]
# The product takes up to 62 bits. Chips have an instruction for it that keeps the upper half.
#
# Both divisions have to round, and where two programs round differently, their codes differ.
# TensorFlow Lite's reference kernels, unless they are built otherwise, round **twice**, each time
# to the nearest whole number:
#
# 1. $H = \lfloor (A \cdot m + 2^{30}) / 2^{31} \rfloor$, with $m$ the multiplier. A tie goes
#    up: 2.5 becomes 3, and −2.5 becomes −2.
# 2. $R = H / 2^{\text{shift}}$, rounded so that a tie goes **away from zero**: 2.5 becomes 3, and
#    −2.5 becomes −3.
#
# Rounding twice is not rounding once: with a shift of 1, $A m / 2^{31} = 2.9$ makes $H = 3$, and
# 1.5 makes $R = 2$. In one step, 1.45 would have become 1.
#
# Draw: show_cells({name: [(str(f(h)), f(h) != round(h / 4 + math.copysign(0.01, h)) and name) for h in
# range(-10, 11, 2)] for name, f in (("`h >> 2`", lambda h: h >> 2), ("ties up", lambda h: (h + 2)
# >> 2), ("ties to even", lambda h: round(h / 4)), ("ties away from zero", lambda h: round(h / 4 +
# math.copysign(0.01, h))))}, [str(h) for h in range(-10, 11, 2)]) | Four ways to divide by 4. Coloured
# is what differs from the last: a plain shift rounds down, and of ties each has its own idea.

# %%
numbers = torch.tensor([-7, -6, -5, 5, 6, 7])
print("divided by 4", (numbers / 4).tolist())
print(">> 2        ", (numbers >> 2).tolist())
print("torch.round ", torch.round(numbers / 4).int().tolist())

# %% [markdown]
# PyTorch's own quantized convolution, on a CPU, multiplies the accumulator by the ratio as a float
# and rounds once, a tie to even. So its codes are the same as ours but for sums close to a tie.
#
# **Write `int_conv2d(x, x_zero, w, bias, padding, multiplier, shift, out_zero, convolve)`**, with
#
# - `x`: `uint8`, shape `(n, c, height, width)`, in any layout; `x_zero`: its zero point, 0 to 255
# - `w`: `int8`, shape `(o, c, rows, columns)`, in any layout
# - `bias`: `int32`, shape `(o,)`, in the accumulators' unit
# - `padding`: how many rows and columns of 0.0 to add on each of the four sides, 0 or more
# - `multiplier`, from $2^{30}$ to $2^{31} - 1$, and `shift`, from 0 to 30: `int32`, shape `(o,)`, a
#   pair for each output channel
# - `out_zero`: the result's zero point, 0 to 255
# - `convolve`: a unit like the one above. Call it **exactly once**: all products of codes are its
#   work.
#
# No size is 0, and the padded image is at least as large as the kernel. Accumulators fit into
# `int32`. Return the codes of the convolution, moved by one row or column at a time, as a `uint8`
# tensor of shape `(n, o, …, …)`: from $A$ follow $H$ and $R$ as above, and the code is
# $R + z_y$, or 0 or 255 where that lies beyond. Whole numbers only: no tensor on the way may hold
# floats.
#
# <details><summary>Hint 1: one number per channel</summary>
#
# $\sum q_w (q_x - z_x) = \sum q_w q_x - z_x \sum q_w$. The unit computes the first sum. The second
# depends on the output channel alone, as long as every place under the kernel holds a code for what
# is really there, the border too. It can be put into the bias, before any image is seen.
#
# </details>
# <details><summary>Hint 2: room</summary>
#
# $A \cdot m$ needs 64 bits, and two `int32` tensors have a product in `int32`. Shapes need room as
# well: a number for each of `o` channels goes with `(n, o, …, …)` as `(o, 1, 1)`.
#
# </details>
# <details><summary>Hint 3: away from zero</summary>
#
# For $H \ge 0$: add half of $2^{\text{shift}}$, then shift. For $H < 0$ it is the mirror image: do
# the same to $-H$, and change the sign again. Where the shift is 0, there is no half to add.
#
# </details>


# %% solution="int_conv2d"
def int_conv2d(
    x: torch.Tensor,
    x_zero: int,
    w: torch.Tensor,
    bias: torch.Tensor,
    padding: int,
    multiplier: torch.Tensor,
    shift: torch.Tensor,
    out_zero: int,
    convolve: Convolve,
) -> torch.Tensor:
    """Convolve codes and requantize the sums, with whole numbers only.

    x: uint8 (n, c, height, width); w: int8 (o, c, rows, columns); bias: int32 (o,)
    multiplier, shift: int32 (o,); convolve: codes and weights in, their int32 convolution out
    returns: uint8 (n, o, ...), clamp(round(A * multiplier / 2**31 / 2**shift) + out_zero)
    """
    ### BEGIN SOLUTION
    # 0.0 is what the zero point stands for. Only so does one number per channel repair all sums.
    padded = F.pad(x, [padding] * 4, value=x_zero)
    folded = bias - x_zero * w.sum((1, 2, 3))  # (o,), known before any image is
    sums = convolve(padded, w) + folded[:, None, None]  # int64 from here on: the product needs it
    high = (sums * multiplier[:, None, None] + (1 << 30)) >> 31
    shift = shift.long()[:, None, None]
    half = (1 << shift) >> 1
    # >> rounds down; on the magnitude, adding a half before it sends ties away from zero.
    rounded = high.sign() * ((high.abs() + half) >> shift)
    return (rounded + out_zero).clamp(0, 255).to(torch.uint8)
    ### END SOLUTION


# %% grade="int_conv2d"
grade("int_conv2d")

# %% [markdown]
# ## Before the integers
#
# Your layers take scales, zero points and weights as they come. Two things can be done about them
# earlier.
#
# **One pair for all parts.** `quantized_concat` had to write its parts anew, because each had a pair of
# its own. Calibrate over all of them together, give each the result's pair, and concatenation copies
# bytes, as in floats. TensorFlow Lite's
# [specification](https://www.tensorflow.org/lite/performance/quantization_spec) demands it: inputs and
# output have one scale and one zero point. A part with a small range pays for it:


# %%
def codes_of(x, scale, zero_point):
    return ((x / scale).round() + zero_point).clamp(-128, 127).to(torch.int8)


def share_a_pair():
    narrow, wide = torch.tensor([0.0, 0.1, 0.26]), torch.tensor([-2.0, 3.1])
    parts = [codes_of(part, 5.1 / 255, -28) for part in (narrow, wide)]
    whole = codes_of(torch.cat([narrow, wide]), 5.1 / 255, -28)
    print("bytes can be copied:", torch.equal(torch.cat(parts), whole))
    print("narrow, common pair:", parts[0].tolist())
    print("narrow, its own:    ", codes_of(narrow, 0.26 / 255, -128).tolist())


share_a_pair()

# %% [markdown]
# It has 13 steps for its numbers in place of 255.
#
# **Training for eight bits.** `torch.fake_quantize_per_tensor_affine` can stand in the middle of a
# network, which then learns to live with the rounding: **quantization-aware training**. But rounding is
# a staircase. Its derivative is 0 wherever it has one, and nothing below it would learn.
#
# Draw: show_curves({"x, written and read": [(at / 50, 0.25 * round(at / 50 / 0.25)) for at in range(-50,
# 51)], "what backward takes it for": [(at, at) for at in (-1, 1)]}, "x", "") | A scale of 0.25. The
# staircase is flat nearly everywhere; backward goes up the straight line.
#
# **Predict.** 0.126, 1.504 and 3.0 go through it, with scale 0.01 and zero point −28. The last is
# clamped. Which gradients does PyTorch give? Write a list of three numbers.


# %%
def through_steps(x):
    codes = ((x / 0.01).round() - 28).clamp(-128, 127)
    return 0.01 * (codes + 28)


def through_pytorch(x):
    return torch.fake_quantize_per_tensor_affine(x, 0.01, -28, -128, 127)


def gradients_through(write_and_read):
    x = torch.tensor([0.126, 1.504, 3.0], requires_grad=True)
    write_and_read(x).sum().backward()
    return x.grad.tolist()


print("as written, step by step:", gradients_through(through_steps))
predict(..., lambda: gradients_through(through_pytorch))

# %% [markdown]
# The same numbers come out of both. PyTorch's backward is that of a *straight-through estimator* (Bengio
# et al., 2013, [arXiv 1308.3432](https://arxiv.org/abs/1308.3432)): as if nothing had been rounded, and
# 0 for what was clamped.
