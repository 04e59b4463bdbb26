# %% blocked: builtin_cast
# The built-in does the rounding that the exercise asks you to build.
def round_to_bf16(x):
    return x.to(torch.bfloat16)


# %% mistake: truncates
# You dropped the lower sixteen bits, which always rounds towards zero. Look at them first: above
# `0x8000` the upper half must go up by one. `0x3F80C000` lies nearer to `0x3F81` than to `0x3F80`.
def round_to_bf16(x):
    return (x.view(torch.int32) >> 16).to(torch.int16).view(torch.bfloat16)


# %% mistake: ties_go_up
# You add half a step, so that every tie goes away from zero. In a tie the upper half may only go
# up if it is odd: `0x3F808000` becomes `0x3F80`, `0x3F818000` becomes `0x3F82`.
def round_to_bf16(x):
    bits = x.view(torch.int32)
    rounded = (bits + 0x8000) >> 16
    return torch.where(x.isnan(), bits >> 16 | 0x40, rounded).to(torch.int16).view(torch.bfloat16)


# %% mistake: ties_go_down
# Your ties always go towards zero. In a tie the upper half must go up if it is odd:
# `0x3F818000` becomes `0x3F82`.
def round_to_bf16(x):
    bits = x.view(torch.int32)
    rounded = (bits + 0x7FFF) >> 16
    return torch.where(x.isnan(), bits >> 16 | 0x40, rounded).to(torch.int16).view(torch.bfloat16)


# %% mistake: forgets_nan
# Numbers are right, but NaN is rounded like a number. The carry can empty its mantissa, which
# makes an infinity, or run through the exponent into the sign, which makes a zero.
def round_to_bf16(x):
    bits = x.view(torch.int32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).to(torch.int16).view(torch.bfloat16)


# %% mistake: truncates_nan
# You drop the lower half of a NaN. If all the set bits of its mantissa are there, none is left, and
# that is an infinity. Set a mantissa bit in the upper half yourself.
def round_to_bf16(x):
    bits = x.view(torch.int32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return torch.where(x.isnan(), bits >> 16, rounded).to(torch.int16).view(torch.bfloat16)


# %% mistake: infinity_becomes_nan
# You treat infinities as NaN, as if all that is not finite were the same. A NaN has a mantissa that
# is not zero: ask `isnan`. An infinity rounds to itself, by the same addition as all numbers.
def round_to_bf16(x):
    bits = x.view(torch.int32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return torch.where(x.isfinite(), rounded, 0x7FC0).to(torch.int16).view(torch.bfloat16)


# %% mistake: saturates
# You keep the result finite. Rounding to nearest goes to infinity from half a step beyond the
# largest number on: `0x7F7F8000` and all above it become `0x7F80`.
def round_to_bf16(x):
    largest = torch.tensor(0x7F7F0000, dtype=torch.int32).view(torch.float32)
    finite = torch.where(x.isinf() | x.isnan(), x, x.clamp(-largest, largest))
    bits = finite.view(torch.int32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return torch.where(x.isnan(), bits >> 16 | 0x40, rounded).to(torch.int16).view(torch.bfloat16)


# %% mistake: flushes_subnormals
# You turn subnormal numbers into zero. They round like all others: their exponent field is zero,
# and the addition does not care.
def round_to_bf16(x):
    x = torch.where(x.abs() < 2.0**-126, x * 0.0, x)
    bits = x.view(torch.int32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return torch.where(x.isnan(), bits >> 16 | 0x40, rounded).to(torch.int16).view(torch.bfloat16)


# %% mistake: loses_the_sign
# You round the magnitude well and lose the sign bit. Work on all 32 bits: the sign is the top one,
# and neither the addition nor the shift touches it.
def round_to_bf16(x):
    bits = x.view(torch.int32) & 0x7FFFFFFF
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return torch.where(x.isnan(), bits >> 16 | 0x40, rounded).to(torch.int16).view(torch.bfloat16)


# %% alternate: by_comparing
# The three cases, spelled out.
def round_to_bf16(x):
    bits = x.view(torch.int32).to(torch.int64) & 0xFFFFFFFF
    upper, lower = bits >> 16, bits & 0xFFFF
    up = (lower > 0x8000) | ((lower == 0x8000) & (upper % 2 == 1))
    upper = torch.where(x.isnan(), 0x7FC0, upper + up.long())
    return torch.where(upper >= 0x8000, upper - 0x10000, upper).to(torch.int16).view(torch.bfloat16)


# %% alternate: by_scaling
# By arithmetic in float64: scale so that a step is one, round, scale back. The result is exact in
# float32, whose upper half is the answer.
def round_to_bf16(x):
    wide = x.double()
    exponent = torch.frexp(wide).exponent.clamp(min=-125)
    step = torch.ldexp(torch.ones_like(wide), exponent - 8)
    exact = torch.where(x.isfinite(), torch.round(wide / step) * step, wide).float()
    exact = torch.copysign(exact, x)
    upper = exact.view(torch.int32) >> 16
    return torch.where(x.isnan(), 0x7FC0, upper).to(torch.int16).view(torch.bfloat16)


# %% alternate: one_at_a_time
# Element by element, in plain Python.
def round_one(bits):
    if bits & 0x7FFFFFFF > 0x7F800000:
        return 0x7FC0
    return (bits + 0x7FFF + (bits >> 16 & 1) >> 16) & 0xFFFF


def round_to_bf16(x):
    halves = [round_one(bits & 0xFFFFFFFF) for bits in x.reshape(-1).view(torch.int32).tolist()]
    signed = [half - 0x10000 if half >= 0x8000 else half for half in halves]
    return torch.tensor(signed, dtype=torch.int16).reshape(x.shape).view(torch.bfloat16)
