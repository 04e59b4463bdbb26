# %% blocked: nextafter
# `torch.nextafter` walks to the neighbour for you. Find the neighbour in the bits.
def spacing(x):
    magnitude = x.abs()
    return torch.nextafter(magnitude, torch.full_like(x, torch.inf)) - magnitude


# %% mistake: eps_everywhere
# You gave every number the step that follows 1. The step is relative: it doubles at every power of
# two. `eps` is the spacing from 1 to 2 only.
def spacing(x):
    step = torch.full_like(x, 2.0**-23)
    return torch.where(x.isfinite(), step, x.abs())


# %% mistake: eps_times_x
# You multiplied `eps` by the number. The spacing is `eps` times the *power of two* at or below it:
# the same for all numbers from one power to the next.
def spacing(x):
    return x.abs() * 2.0**-23


# %% mistake: the_gap_below
# You measured the gap to the next smaller number. At a power of two that gap is half as wide as
# the one above, which was asked for.
def spacing(x):
    bits = x.view(torch.int32) & 0x7FFFFFFF
    magnitude = bits.view(torch.float32)
    step = magnitude - (bits - 1).clamp(min=0).view(torch.float32)
    step = torch.where(bits == 0, torch.tensor(2.0**-149), step)
    return torch.where(x.isfinite(), step, x.abs())


# %% mistake: log2_rounds
# You found the exponent with a logarithm. Just below a power of two it is rounded up to a whole
# number, and the result is twice too large. Read the exponent from the bits.
def spacing(x):
    exponent = x.abs().clamp(min=2.0**-126).log2().floor().clamp(max=127).double()
    step = torch.ldexp(torch.ones_like(exponent), exponent.nan_to_num().int() - 23).float()
    return torch.where(x.isfinite(), step, x.abs())


# %% mistake: steps_into_infinity
# After the largest finite number comes infinity, and the distance to that is infinite. The
# exercise asks for the step that its exponent stands for, as for all numbers from `2 ** 127` on.
def spacing(x):
    bits = x.view(torch.int32) & 0x7FFFFFFF
    step = (bits + 1).view(torch.float32) - bits.view(torch.float32)
    return torch.where(x.isfinite(), step, x.abs())


# %% mistake: infinity_minus_infinity
# Infinity must give infinity. The pattern after it is a NaN, and `inf - inf` is a NaN as well:
# handle what is not finite apart, with `torch.where`.
def spacing(x):
    power = x.view(torch.int32) & 0x7F800000
    return (power | 1).view(torch.float32) - power.view(torch.float32)


# %% mistake: exponent_field_zero
# Zero and the subnormals came out too small. Their exponent field is 0, but they share the scale
# of the field 1: clamp the field before you compute the power.
def spacing(x):
    field = (x.view(torch.int32) >> 23) & 0xFF
    step = torch.ldexp(torch.ones_like(x, dtype=torch.float64), field - 150).float()
    return torch.where(x.isfinite(), step, x.abs())


# %% mistake: step_underflows
# You subtract 23 from the exponent field and stop at zero. Below `2 ** -103` the spacing itself is
# subnormal: there it is one set mantissa bit, and the exponent field is zero.
def spacing(x):
    field = (x.view(torch.int32) >> 23) & 0xFF
    step = ((field - 23).clamp(min=0) << 23).view(torch.float32)
    step = torch.where(field == 0, torch.tensor(2.0**-149), step)
    return torch.where(x.isfinite(), step, x.abs())


# %% mistake: frexp_is_one_higher
# Your spacing is twice too large. `frexp` gives a mantissa from one half to one, so its exponent is
# one higher than the power of two at or below the number.
def spacing(x):
    exponent = torch.frexp(x.double()).exponent
    exponent = torch.where(x == 0, -125, exponent).clamp(min=-125)
    step = torch.ldexp(torch.ones_like(x, dtype=torch.float64), exponent - 23)
    return torch.where(x.isfinite(), step.float(), x.abs())


# %% mistake: keeps_the_sign
# Your spacing is negative for negative numbers. Adding 1 to the pattern of a negative number makes
# it *more* negative: clear the sign bit first.
def spacing(x):
    power = x.view(torch.int32) & ~0x7FFFFF
    step = (power | 1).view(torch.float32) - power.view(torch.float32)
    return torch.where(x.isfinite(), step, x.abs())


# %% alternate: from_the_field
# Two to the power that the exponent field says, in float64, where none of them is subnormal.
def spacing(x):
    field = (x.view(torch.int32) >> 23) & 0xFF
    exponent = field.clamp(min=1) - 150
    step = torch.ldexp(torch.ones_like(exponent, dtype=torch.float64), exponent).float()
    return torch.where(field == 255, x.abs(), step)


# %% alternate: builds_the_pattern
# The result's own bits: an exponent field 23 lower, or one set mantissa bit where that is too low.
def spacing(x):
    field = (x.view(torch.int32) >> 23) & 0xFF
    subnormal = 1 << (field - 1).clamp(min=0, max=22)
    bits = torch.where(field > 23, (field - 23) << 23, subnormal)
    return torch.where(x.isfinite(), bits.view(torch.float32), x.abs())


# %% alternate: frexp
# `frexp` tells the exponent exactly, of subnormals too.
def spacing(x):
    exponent = torch.frexp(x.double()).exponent
    exponent = torch.where(x == 0, -125, exponent).clamp(min=-125)
    step = torch.ldexp(torch.ones_like(x, dtype=torch.float64), exponent - 24)
    return torch.where(x.isfinite(), step.float(), x.abs())


# %% alternate: one_at_a_time
# Python's `math.ulp` knows the spacing of float64, which has 29 mantissa bits more.
def spacing(x):
    steps = [max(math.ulp(v) * 2.0**29, 2.0**-149) for v in x.reshape(-1).tolist()]
    return torch.tensor(steps, dtype=torch.float32).reshape(x.shape)
