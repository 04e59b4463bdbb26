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

# %% [markdown]
# ## How to work
#
# Each exercise has a card, a few cells to read and run, and one cell to write: the one that
# raises `NotImplementedError`. The cell after it grades what you wrote, as often as you like.
# It shows which input fails, what was expected and what came.
#
# Where a cell calls `predict(...)`, write your guess in place of the dots before you run it.
# Nobody grades a guess; having made one is what makes the answer stick.

# %%
import math

import torch

from grader import grade, predict

# %% [markdown]
# ## The family
#
# Every floating-point format cuts its bits into three fields: one **sign** bit, some **exponent**
# bits, and the rest for the **mantissa** (also called fraction or significand). Exponent bits buy
# range. Mantissa bits buy precision.

# %%
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
# what `float32` has too, and so `bfloat16` reaches just as far, with much coarser steps.

# %%
x = torch.tensor(1 / 3)
for dtype in [torch.float32, torch.float16, torch.bfloat16]:
    print(f"{dtype!s:>15} {x.to(dtype).item():.10f}")

# %% [markdown] exercise="decode"
# title: Read a float
# minutes: 20
# difficulty: 2
# points: 4
# prerequisites: []
# teaches: >-
#   what the three fields of a float mean, and the three cases that the exponent tells apart.
# leaves out: formats without infinities, such as float8_e4m3fn.
# off limits: [torch.Tensor.view, torch.frombuffer, "import:struct", "import:numpy", "import:ctypes"]

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
# with up to 8 exponent and 23 mantissa bits. A Python `float` has room for all of them, exactly.
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
# `torch.finfo` knows the limits of each format. It need not look them up: two widths, $E$ and $M$,
# determine them all. Four numbers are worth knowing by heart, or by rule:
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
# off limits: [torch.nextafter, torch.Tensor.nextafter_, "import:numpy"]

# %% [markdown]
# It is said that `float32` is precise to $10^{-7}$. As a step between numbers that is true in one
# place only. `torch.nextafter` walks from a number to its neighbour:

# %%
for value in [1e-30, 0.001, 1.0, 1000.0, 1e6, 1e9]:
    x = torch.tensor(value)
    step = torch.nextafter(x, torch.tensor(torch.inf)) - x
    print(f"{value:<8g} step {step.item():<12.6g} step / value {(step / x).item():.1e}")

# %% [markdown]
# The step grows with the number; their *ratio* stays between $2^{-24}$ and $2^{-23}$, which is near
# $10^{-7}$. Between one power of two and the next there are always $2^{23}$ numbers, evenly spaced:
# as many from 1 to 2 as from 1,048,576 to 2,097,152. The distance from a number to the next larger
# one is called its **spacing**, or one *unit in the last place*.
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

# %% [markdown] exercise="round_to_bf16"
# title: Round FP32 to BF16
# minutes: 30
# difficulty: 3
# points: 6
# prerequisites: [decode]
# teaches: >-
#   rounding to nearest, ties to even, as hardware does it: one addition on whole numbers.
# leaves out: other rounding modes, and flags that tell whether a result was inexact.
# off limits: ["cast:torch.bfloat16", torch.Tensor.bfloat16, "import:ctypes"]

# %% [markdown]
# A `bfloat16` is the upper half of a `float32`: the same sign, the same eight exponent bits, and
# the first seven of 23 mantissa bits. So rounding to it means to decide what happens to the upper
# sixteen bits when the lower sixteen go away.
#
# Simply dropping them is **truncation**. It is wrong by up to a whole step, and always in the same
# direction. The rule that IEEE 754 and PyTorch follow is **round to nearest, ties to even**:
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
# `float16`. That makes nineteen bits, and yet no tensor is ever stored in nineteen. TF32 is a
# *mode*: the operands of a matrix product lie in memory as `float32`, lose their last thirteen
# mantissa bits on the way into the multiplier, and the sums are `float32` again. There is no
# dtype of that name. There are switches, and they do not all stand the same way:

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
# For numbers of every size you have to shorten the mantissa yourself. It is the step of the
# exercise before, with another place to cut and with a result that stays a `float32`.
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
# off limits: ["cast:torch.float8_e4m3fn", "cast:torch.float8_e5m2"]

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
# number; or one may **overflow**, into infinity, or into NaN where there is none. Libraries and
# even versions of one library differ, and so a careful function takes the choice as an argument.
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
# | FP16 | 16 | inference; training together with loss scaling | finer steps, little range |
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

# %%
print(torch.iinfo(torch.int8).min, torch.iinfo(torch.int8).max)
for value in [1, -1, 127, -127, -128]:
    pattern = torch.tensor(value, dtype=torch.int8).view(torch.uint8).item()
    print(f"{value:>5} {pattern:08b}")
print("127 + 1 =", (torch.tensor(127, dtype=torch.int8) + 1).item())

# %% [markdown]
# **Four bits** are sixteen values. No machine addresses half a byte, and so two values share one.
# PyTorch 2.13 has names for such dtypes and hardly any operator: they are there to be handed to
# kernels that know them.

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
