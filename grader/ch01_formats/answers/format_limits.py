# %% blocked: asks_finfo
# `torch.finfo` is the table that the exercise asks you to derive, and it has five rows only.
def format_limits(exponent_bits, mantissa_bits):
    info = torch.finfo(
        {(5, 10): torch.float16, (8, 7): torch.bfloat16}[exponent_bits, mantissa_bits]
    )
    return {
        "max": info.max,
        "smallest_normal": info.smallest_normal,
        "smallest_subnormal": info.smallest_normal * info.eps,
        "eps": info.eps,
    }


# %% mistake: all_ones_is_a_number
# Your largest number is twice too large: you used the highest exponent field. All ones is kept
# for infinity and NaN; the largest finite number has the field one below, the exponent `bias`.
def format_limits(exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    eps = 2.0**-mantissa_bits
    normal = 2.0 ** (1 - bias)
    largest = math.ldexp(2.0 - eps, bias + 1) if bias < 1023 else math.inf
    return {
        "max": largest,
        "smallest_normal": normal,
        "smallest_subnormal": normal * eps,
        "eps": eps,
    }


# %% mistake: max_without_mantissa
# Your largest number is only the largest power of two. Its mantissa may be full, too: `2 - eps`
# times that.
def format_limits(exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    eps = 2.0**-mantissa_bits
    normal = 2.0 ** (1 - bias)
    return {
        "max": 2.0**bias,
        "smallest_normal": normal,
        "smallest_subnormal": normal * eps,
        "eps": eps,
    }


# %% mistake: next_power_of_two
# You gave the power of two that the format just fails to reach: 65536 for float16. The largest
# finite number is one step before it, 65504.
def format_limits(exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    eps = 2.0**-mantissa_bits
    normal = 2.0 ** (1 - bias)
    return {
        "max": math.ldexp(1.0, bias + 1) if bias < 1023 else math.inf,
        "smallest_normal": normal,
        "smallest_subnormal": normal * eps,
        "eps": eps,
    }


# %% mistake: field_zero_is_normal
# Your smallest normal number is half of what it should be: you used the exponent field zero. That
# one is kept for zero and the subnormals; the lowest exponent of a normal number is `1 - bias`.
def format_limits(exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    eps = 2.0**-mantissa_bits
    return {
        "max": (2.0 - eps) * 2.0**bias,
        "smallest_normal": 2.0**-bias,
        "smallest_subnormal": 2.0 ** (1 - bias) * eps,
        "eps": eps,
    }


# %% mistake: subnormal_scale
# Your smallest subnormal is half of what it should be. Subnormals share the scale of the smallest
# normal numbers, `2 ** (1 - bias)`; one step there is `2 ** (1 - bias - M)`.
def format_limits(exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    eps = 2.0**-mantissa_bits
    return {
        "max": (2.0 - eps) * 2.0**bias,
        "smallest_normal": 2.0 ** (1 - bias),
        "smallest_subnormal": 2.0**-bias * eps,
        "eps": eps,
    }


# %% mistake: no_subnormals
# You took the smallest normal number for the smallest of all. Below it come the subnormals, with
# the exponent field zero: the pattern 1 is `2 ** M` times smaller.
def format_limits(exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    eps = 2.0**-mantissa_bits
    return {
        "max": (2.0 - eps) * 2.0**bias,
        "smallest_normal": 2.0 ** (1 - bias),
        "smallest_subnormal": 2.0 ** (1 - bias),
        "eps": eps,
    }


# %% mistake: half_of_eps
# Your `eps` is half of the step after 1. That half is the largest relative error of rounding to
# nearest; here, as in `torch.finfo`, `eps` is the step itself.
def format_limits(exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    step = 2.0**-mantissa_bits
    return {
        "max": (2.0 - step) * 2.0**bias,
        "smallest_normal": 2.0 ** (1 - bias),
        "smallest_subnormal": 2.0 ** (1 - bias) * step,
        "eps": step / 2,
    }


# %% mistake: eps_is_the_smallest
# You took `eps` for the smallest number. It is the distance from 1 to the next number, and the
# exponent has no part in it; the smallest number is far below.
def format_limits(exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    step = 2.0**-mantissa_bits
    smallest = 2.0 ** (1 - bias) * step
    return {
        "max": (2.0 - step) * 2.0**bias,
        "smallest_normal": 2.0 ** (1 - bias),
        "smallest_subnormal": smallest,
        "eps": smallest,
    }


# %% mistake: overflows_on_the_way
# Right for all narrow formats. For float64 you compute `2.0 ** 1024` before you scale it down, and
# that is more than a Python float holds. Multiply `2 - eps` by `2.0 ** bias` instead.
def format_limits(exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    eps = 2.0**-mantissa_bits
    return {
        "max": 2.0 ** (bias + 1) * (1 - eps / 2),
        "smallest_normal": 2.0 ** (1 - bias),
        "smallest_subnormal": 2.0 ** (1 - bias) * eps,
        "eps": eps,
    }


# %% mistake: bias_off_by_one
# Your bias is `2 ** (E - 1)`, one too many, so that all exponents are one too low. It is
# `2 ** (E - 1) - 1`: the field of the number 1 is `0111…1`.
def format_limits(exponent_bits, mantissa_bits):
    bias = 2 ** (exponent_bits - 1)
    eps = 2.0**-mantissa_bits
    highest = 2**exponent_bits - 2 - bias
    return {
        "max": (2.0 - eps) * 2.0**highest,
        "smallest_normal": 2.0 ** (1 - bias),
        "smallest_subnormal": math.ldexp(1.0, 1 - bias - mantissa_bits),
        "eps": eps,
    }


# %% alternate: reads_patterns
# Four patterns, read by the exercise before.
def format_limits(exponent_bits, mantissa_bits):
    def read(pattern):
        return decode(pattern, exponent_bits, mantissa_bits)

    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    one = ((1 << (exponent_bits - 1)) - 1) << mantissa_bits
    return {
        "max": read(infinity - 1),
        "smallest_normal": read(1 << mantissa_bits),
        "smallest_subnormal": read(1),
        "eps": read(one + 1) - read(one),
    }


# %% alternate: whole_numbers
# Everything counted in smallest steps; a float only at the end.
def format_limits(exponent_bits, mantissa_bits):
    from fractions import Fraction

    top = (1 << exponent_bits) - 2
    step = Fraction(1, 1 << ((1 << (exponent_bits - 1)) - 2 + mantissa_bits))
    counts = {
        "max": ((2 << mantissa_bits) - 1) << (top - 1),
        "smallest_normal": 1 << mantissa_bits,
        "smallest_subnormal": 1,
    }
    limits = {name: float(count * step) for name, count in counts.items()}
    return limits | {"eps": 1 / (1 << mantissa_bits)}


# %% alternate: sums_bits
# The largest mantissa as a sum of its bits, and `ldexp` for the scale.
def format_limits(exponent_bits, mantissa_bits):
    highest = sum(2**place for place in range(exponent_bits - 1))
    largest = sum(2.0**-place for place in range(mantissa_bits + 1))
    return dict(
        eps=math.ldexp(1.0, -mantissa_bits),
        smallest_subnormal=math.ldexp(1.0, 1 - highest - mantissa_bits),
        smallest_normal=math.ldexp(1.0, 1 - highest),
        max=math.ldexp(largest, highest),
    )
