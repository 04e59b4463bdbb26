# %% mistake: truncates
# You cleared the last bits without looking at them, which always rounds towards zero. From half a
# step on, the kept part must go up by one.
def round_mantissa(x, kept_bits):
    drop = 23 - kept_bits
    bits = x.view(torch.int32) & -(1 << drop)
    return torch.where(x.isnan(), x, bits.view(torch.float32))


# %% mistake: ties_away
# You add half a step, so that every tie goes away from zero. In a tie the kept part may only go up
# if its last bit is set: with ten bits 1024.5 becomes 1024, and 1025.5 becomes 1026.
def round_mantissa(x, kept_bits):
    drop = 23 - kept_bits
    if drop == 0:
        return x.clone()
    bits = (x.view(torch.int32) + (1 << (drop - 1))) & -(1 << drop)
    return torch.where(x.isnan(), x, bits.view(torch.float32))


# %% mistake: ties_to_zero
# Your ties always go towards zero. In a tie the kept part must go up if its last bit is set: with
# ten bits 1025.5 becomes 1026.
def round_mantissa(x, kept_bits):
    drop = 23 - kept_bits
    if drop == 0:
        return x.clone()
    bits = (x.view(torch.int32) + (1 << (drop - 1)) - 1) & -(1 << drop)
    return torch.where(x.isnan(), x, bits.view(torch.float32))


# %% mistake: always_ten
# You cut thirteen bits whatever `kept_bits` says. The place to cut is `23 - kept_bits`.
def round_mantissa(x, kept_bits):
    bits = x.view(torch.int32)
    rounded = (bits + 0x0FFF + ((bits >> 13) & 1)) & -0x2000
    return torch.where(x.isnan(), x, rounded.view(torch.float32))


# %% mistake: cuts_one_too_few
# You keep one bit more than asked for. A float32 stores 23 mantissa bits; the leading one is not
# among them and does not count.
def round_mantissa(x, kept_bits):
    drop = max(22 - kept_bits, 0)
    if drop == 0:
        return x.clone()
    bits = x.view(torch.int32)
    rounded = (bits + (1 << (drop - 1)) - 1 + ((bits >> drop) & 1)) & -(1 << drop)
    return torch.where(x.isnan(), x, rounded.view(torch.float32))


# %% mistake: nothing_to_drop
# With 23 kept bits there is nothing to drop, and `1 << (drop - 1)` shifts by -1, which raises.
# Return a copy of `x` in that case.
def round_mantissa(x, kept_bits):
    drop = 23 - kept_bits
    bits = x.view(torch.int32)
    rounded = (bits + (1 << (drop - 1)) - 1 + ((bits >> drop) & 1)) & -(1 << drop)
    return torch.where(x.isnan(), x, rounded.view(torch.float32))


# %% mistake: leaves_the_rest
# The addition rounds the upper bits, but you left in the lower ones what it made of them. Clear
# them: every result must end in `23 - kept_bits` zeros.
def round_mantissa(x, kept_bits):
    drop = 23 - kept_bits
    if drop == 0:
        return x.clone()
    bits = x.view(torch.int32)
    rounded = bits + (1 << (drop - 1)) - 1 + ((bits >> drop) & 1)
    return torch.where(x.isnan(), x, rounded.view(torch.float32))


# %% mistake: loses_the_carry
# You round the mantissa field by itself. When it is full, the carry must reach the exponent: what
# lies just below 2 becomes 2, not 1. Add to the whole pattern.
def round_mantissa(x, kept_bits):
    drop = 23 - kept_bits
    if drop == 0:
        return x.clone()
    bits = x.view(torch.int32)
    field = bits & 0x7FFFFF
    field = (field + (1 << (drop - 1)) - 1 + ((bits >> drop) & 1)) & -(1 << drop) & 0x7FFFFF
    rounded = (bits & ~0x7FFFFF) | field
    return torch.where(x.isnan(), x, rounded.view(torch.float32))


# %% mistake: through_half
# For ten bits you went through `float16`. It has the mantissa of TF32 but not its range: beyond
# 65504 all becomes infinite, and below `2 ** -14` bits are lost.
def round_mantissa(x, kept_bits):
    drop = 23 - kept_bits
    if kept_bits == 10:
        return x.half().float()
    if drop == 0:
        return x.clone()
    bits = x.view(torch.int32)
    rounded = (bits + (1 << (drop - 1)) - 1 + ((bits >> drop) & 1)) & -(1 << drop)
    return torch.where(x.isnan(), x, rounded.view(torch.float32))


# %% mistake: forgets_nan
# Numbers are right, but NaN is rounded like a number. If its set bits are all among the last ones,
# an infinity is left; if its mantissa is full, the carry runs into the sign.
def round_mantissa(x, kept_bits):
    drop = 23 - kept_bits
    if drop == 0:
        return x.clone()
    bits = x.view(torch.int32)
    rounded = (bits + (1 << (drop - 1)) - 1 + ((bits >> drop) & 1)) & -(1 << drop)
    return rounded.view(torch.float32)


# %% mistake: cuts_nan
# You clear the last bits of a NaN like those of a number. If all its set bits are among them, its
# mantissa is zero afterwards, and that is an infinity. Return a NaN as it came.
def round_mantissa(x, kept_bits):
    drop = 23 - kept_bits
    if drop == 0:
        return x.clone()
    bits = x.view(torch.int32)
    rounded = (bits + (1 << (drop - 1)) - 1 + ((bits >> drop) & 1)) & -(1 << drop)
    return torch.where(x.isnan(), bits & -(1 << drop), rounded).view(torch.float32)


# %% mistake: fixed_point
# You keep so many bits after the point, whatever the size of the number. The mantissa begins at the
# number's own leading one: the step doubles at every power of two.
def round_mantissa(x, kept_bits):
    wide = x.double()
    return torch.where(x.isfinite(), torch.round(wide * 2**kept_bits) / 2**kept_bits, wide).float()


# %% mistake: saturates
# You keep the result finite. From half a step beyond the largest number that can be kept, rounding
# to nearest gives infinity.
def round_mantissa(x, kept_bits):
    drop = 23 - kept_bits
    if drop == 0:
        return x.clone()
    bits = x.view(torch.int32)
    rounded = (bits + (1 << (drop - 1)) - 1 + ((bits >> drop) & 1)) & -(1 << drop)
    largest = 0x7F800000 - (1 << drop)
    kept = (rounded & 0x7FFFFFFF).clamp(max=largest) | (bits & -0x80000000)
    return torch.where(x.isfinite(), kept.view(torch.float32), x)


# %% mistake: flushes_subnormals
# You turn subnormal numbers into zero. They are rounded by the same rule: their last bits go, and
# what is left may be a subnormal.
def round_mantissa(x, kept_bits):
    drop = 23 - kept_bits
    if drop == 0:
        return x.clone()
    bits = torch.where(x.abs() < 2.0**-126, x * 0.0, x).view(torch.int32)
    rounded = (bits + (1 << (drop - 1)) - 1 + ((bits >> drop) & 1)) & -(1 << drop)
    return torch.where(x.isnan(), x, rounded.view(torch.float32))


# %% mistake: subnormals_keep_as_many
# You count the kept bits from the leading one, of subnormals too. A subnormal's pattern has no
# leading one left out: its last `23 - kept_bits` bits go, like those of any other.
def round_mantissa(x, kept_bits):
    wide = x.double()
    power = torch.frexp(wide).exponent - 1
    step = torch.ldexp(torch.ones_like(wide), power - kept_bits)
    rounded = torch.copysign(torch.round(wide / step) * step, wide).float()
    return torch.where(x.isfinite(), rounded, x)


# %% alternate: by_comparing
# The part that goes, compared with half a step.
def round_mantissa(x, kept_bits):
    step = 2 ** (23 - kept_bits)
    bits = x.view(torch.int32).to(torch.int64)
    rest = bits % step
    down = bits - rest
    up = (2 * rest > step) | ((2 * rest == step) & (down // step % 2 == 1))
    rounded = torch.where(up, down + step, down).to(torch.int32)
    return torch.where(x.isnan(), x, rounded.view(torch.float32))


# %% alternate: by_scaling
# By arithmetic in float64: scale so that a step is one, round, scale back.
def round_mantissa(x, kept_bits):
    wide = x.double()
    power = torch.frexp(wide).exponent.clamp(min=-125) - 1
    step = torch.ldexp(torch.ones_like(wide), power - kept_bits)
    rounded = torch.copysign(torch.round(wide / step) * step, wide).float()
    return torch.where(x.isfinite(), rounded, x)


# %% alternate: big_number
# Adding a number whose last bit is one step wide leaves the rounding to float64's own addition.
def round_mantissa(x, kept_bits):
    wide = x.double()
    exponent = torch.frexp(wide).exponent.clamp(min=-125)
    big = torch.ldexp(torch.full_like(wide, 1.5), 51 + exponent - kept_bits)
    rounded = torch.copysign(((wide.abs() + big) - big), wide).float()
    return torch.where(x.isfinite(), rounded, x)


# %% alternate: one_at_a_time
# Element by element, in whole numbers of Python.
def round_mantissa(x, kept_bits):
    import struct

    def one(bits):
        bits &= 0xFFFFFFFF
        if bits & 0x7FFFFFFF <= 0x7F800000:
            half, drop = bits & (1 << (23 - kept_bits)) >> 1, 23 - kept_bits
            rest = bits & ((1 << drop) - 1)
            up = half and (rest != half or bits >> drop & 1)
            bits = (bits >> drop) + bool(up) << drop
        return struct.unpack("<f", struct.pack("<I", bits))[0]

    values = [one(bits) for bits in x.reshape(-1).view(torch.int32).tolist()]
    return torch.tensor(values, dtype=torch.float32).reshape(x.shape)
