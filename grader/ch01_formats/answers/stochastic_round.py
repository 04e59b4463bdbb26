# %% mistake: to_nearest
# You round to nearest and do not look at the noise. Then every update below half a step is lost,
# which is what the exercise is about.
def stochastic_round(x, noise):
    return x.to(torch.bfloat16)


# %% mistake: truncates
# You drop the lower half and do not look at the noise, so that nothing ever goes up.
def stochastic_round(x, noise):
    bits = x.view(torch.int32)
    return torch.where(x.isnan(), 0x7FC0, bits >> 16).to(torch.int16).view(torch.bfloat16)


# %% mistake: one_too_many
# You count one noise too many: there are `k` whole numbers below `k`, and 0 is one of them. With
# `<=` even a number that `bfloat16` holds goes up once in 65,536 times.
def stochastic_round(x, noise):
    bits = x.view(torch.int32)
    up = (noise <= (bits & 0xFFFF)).int()
    return torch.where(x.isnan(), 0x7FC0, (bits >> 16) + up).to(torch.int16).view(torch.bfloat16)


# %% mistake: reversed
# Your probability is that of the other neighbour. A number that has come a quarter of the way must
# go up in a quarter of all cases, not in three.
def stochastic_round(x, noise):
    bits = x.view(torch.int32)
    lower = bits & 0xFFFF
    up = ((noise >= lower) & (lower > 0)).int()
    return torch.where(x.isnan(), 0x7FC0, (bits >> 16) + up).to(torch.int16).view(torch.bfloat16)


# %% mistake: fair_coin
# You toss a fair coin between the two neighbours. The mean is right only for what lies in the
# middle: the coin must know how far the number has come.
def stochastic_round(x, noise):
    bits = x.view(torch.int32)
    up = ((noise >= 0x8000) & ((bits & 0xFFFF) > 0)).int()
    return torch.where(x.isnan(), 0x7FC0, (bits >> 16) + up).to(torch.int16).view(torch.bfloat16)


# %% mistake: noise_then_nearest
# You add the noise and then round to nearest. The noise *is* the rounding: half a step more on top
# of it sends too many numbers up. Drop the lower half after the addition.
def stochastic_round(x, noise):
    bits = x.view(torch.int32)
    bits = bits + noise
    return (
        torch.where(x.isnan(), 0x7FC0, (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)
        .to(torch.int16)
        .view(torch.bfloat16)
    )


# %% mistake: fixed_step
# You scale the noise to the step that follows 1. The step of `bfloat16` doubles at every power of
# two, so that this is right from 1 to 2 only. Add the noise to the bits: there every step counts
# 65,536.
def stochastic_round(x, noise):
    moved = x + torch.copysign(noise * 2.0**-23, x)
    moved = torch.where((x.view(torch.int32) & 0xFFFF) == 0, x, moved)
    return (
        torch.where(x.isnan(), 0x7FC0, moved.view(torch.int32) >> 16)
        .to(torch.int16)
        .view(torch.bfloat16)
    )


# %% mistake: negative_upside_down
# Positive numbers are right. For negative ones your probability belongs to the other neighbour: the
# lower half counts the way from the smaller *magnitude*, whatever the sign.
def stochastic_round(x, noise):
    bits = x.view(torch.int32)
    lower = bits & 0xFFFF
    part = torch.where((bits < 0) & (lower > 0), 65_536 - lower, lower)
    return (
        torch.where(x.isnan(), 0x7FC0, (bits >> 16) + (noise < part).int())
        .to(torch.int16)
        .view(torch.bfloat16)
    )


# %% mistake: one_draw_for_all
# You use one noise for all elements. Then they all go up together; each needs its own.
def stochastic_round(x, noise):
    bits = x.view(torch.int32)
    one = noise.reshape(-1)[0] if noise.numel() else 0
    return torch.where(x.isnan(), 0x7FC0, (bits + one) >> 16).to(torch.int16).view(torch.bfloat16)


# %% mistake: own_dice
# You draw random numbers of your own instead of using `noise`. On average that is as good, but
# nobody can repeat the result, and the checks count every noise exactly once.
def stochastic_round(x, noise):
    bits = x.view(torch.int32)
    dice = torch.randint(0, 65_536, x.shape, dtype=torch.int32)
    return torch.where(x.isnan(), 0x7FC0, (bits + dice) >> 16).to(torch.int16).view(torch.bfloat16)


# %% mistake: stays_finite
# You keep the result finite. Beyond the largest number the upper neighbour is infinity, and for `k`
# noises that is where it goes.
def stochastic_round(x, noise):
    bits = x.view(torch.int32)
    rounded = (bits + noise) >> 16
    rounded = torch.where(((rounded & 0x7FFF) == 0x7F80) & ~x.isinf(), rounded - 1, rounded)
    return torch.where(x.isnan(), 0x7FC0, rounded).to(torch.int16).view(torch.bfloat16)


# %% mistake: flushes_subnormals
# You turn subnormal numbers into zero. They have a lower half like all others, and go up for as
# many noises as it says.
def stochastic_round(x, noise):
    small = (x.abs() < 2.0**-126) & ((x.view(torch.int32) & 0xFFFF) > 0)
    bits = torch.where(small, x * 0.0, x).view(torch.int32)
    return torch.where(x.isnan(), 0x7FC0, (bits + noise) >> 16).to(torch.int16).view(torch.bfloat16)


# %% mistake: forgets_nan
# Numbers are right, but a NaN does not stay one. Its upper half may mean infinity, or the noise
# carries it through the sign into zero.
def stochastic_round(x, noise):
    bits = x.view(torch.int32)
    return ((bits + noise) >> 16).to(torch.int16).view(torch.bfloat16)


# %% mistake: truncates_nan
# You keep the noise away from a NaN, and cut its lower half off. If all its set bits are there, what
# is left means infinity. Set a mantissa bit of the upper half yourself.
def stochastic_round(x, noise):
    bits = x.view(torch.int32)
    upper = torch.where(x.isnan(), bits, bits + noise) >> 16
    return upper.to(torch.int16).view(torch.bfloat16)


# %% alternate: by_comparing
# Up for the noises below the lower half: others than those for which the sum carries, just as many.
def stochastic_round(x, noise):
    bits = x.view(torch.int32)
    up = noise < (bits & 0xFFFF)
    return torch.where(x.isnan(), 0x7FC0, (bits >> 16) + up).to(torch.int16).view(torch.bfloat16)


# %% alternate: then_casts
# With a lower half of zeros the built-in cast has nothing left to round, and looks after NaN.
def stochastic_round(x, noise):
    bits = (x.view(torch.int32) + (0xFFFF ^ noise)) & -0x10000
    return torch.where(x.isnan(), x, bits.view(torch.float32)).to(torch.bfloat16)


# %% alternate: adds_floats
# The noise as a number: so many times the spacing of `float32`, added to the magnitude.
def stochastic_round(x, noise):
    moved = x + torch.copysign(noise * spacing(x), x)
    kept = torch.where(x.isfinite(), moved, x)
    return torch.where(x.isnan(), 0x7FFF, kept.view(torch.int32) >> 16).short().view(torch.bfloat16)


# %% alternate: in_int64
# Magnitude and sign apart, in wide whole numbers.
def stochastic_round(x, noise):
    bits = x.view(torch.int32).long() & 0xFFFFFFFF
    sign, magnitude = bits >> 31, bits & 0x7FFFFFFF
    upper = (magnitude + noise).div(65_536, rounding_mode="floor")
    upper = torch.where(magnitude > 0x7F800000, 0x7FC1, upper)
    return (upper - 0x8000 * sign).to(torch.int16).view(torch.bfloat16)
