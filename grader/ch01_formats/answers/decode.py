# %% blocked: reinterprets
# Letting PyTorch read the bits skips what the exercise asks you to write.
def decode(pattern, exponent_bits, mantissa_bits):
    dtype = {(5, 10): torch.float16, (8, 7): torch.bfloat16}[exponent_bits, mantissa_bits]
    return torch.tensor([pattern], dtype=torch.uint16).view(dtype).item()


# %% mistake: no_leading_one
# You left out the leading one. Unless the exponent field is zero, the mantissa field holds only
# what comes after the point: the number is `1 + m / 2**M`, scaled.
def decode(pattern, exponent_bits, mantissa_bits):
    mantissa = pattern & ((1 << mantissa_bits) - 1)
    exponent = (pattern >> mantissa_bits) & ((1 << exponent_bits) - 1)
    sign = -1.0 if pattern >> (mantissa_bits + exponent_bits) else 1.0
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else sign * math.inf
    return sign * math.ldexp(mantissa, max(exponent, 1) - bias - mantissa_bits)


# %% mistake: subnormals_like_normals
# You give subnormals a leading one, too. When the exponent field is all zeros there is none, and
# that is how the format reaches zero.
def decode(pattern, exponent_bits, mantissa_bits):
    mantissa = pattern & ((1 << mantissa_bits) - 1)
    exponent = (pattern >> mantissa_bits) & ((1 << exponent_bits) - 1)
    sign = -1.0 if pattern >> (mantissa_bits + exponent_bits) else 1.0
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else sign * math.inf
    return sign * math.ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits)


# %% mistake: subnormal_scale
# Your subnormals are half of what they should be. Their scale is that of the smallest normal
# numbers, `2 ** (1 - bias)`; the exponent does not go one lower for them.
def decode(pattern, exponent_bits, mantissa_bits):
    mantissa = pattern & ((1 << mantissa_bits) - 1)
    exponent = (pattern >> mantissa_bits) & ((1 << exponent_bits) - 1)
    sign = -1.0 if pattern >> (mantissa_bits + exponent_bits) else 1.0
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else sign * math.inf
    if exponent:
        mantissa += 1 << mantissa_bits
    return sign * math.ldexp(mantissa, exponent - bias - mantissa_bits)


# %% mistake: no_infinity
# You read the highest exponent like any other. All ones is kept for infinity (mantissa zero) and
# NaN (any other mantissa).
def decode(pattern, exponent_bits, mantissa_bits):
    mantissa = pattern & ((1 << mantissa_bits) - 1)
    exponent = (pattern >> mantissa_bits) & ((1 << exponent_bits) - 1)
    sign = -1.0 if pattern >> (mantissa_bits + exponent_bits) else 1.0
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent:
        mantissa += 1 << mantissa_bits
    else:
        exponent = 1
    return sign * math.ldexp(mantissa, exponent - bias - mantissa_bits)


# %% mistake: one_zero
# You lost minus zero: pattern `0x8000` of float16 is `-0.0`. It equals `0.0`, but its sign bit is
# set, and `1 / x` would tell them apart.
def decode(pattern, exponent_bits, mantissa_bits):
    mantissa = pattern & ((1 << mantissa_bits) - 1)
    exponent = (pattern >> mantissa_bits) & ((1 << exponent_bits) - 1)
    sign = -1 if pattern >> (mantissa_bits + exponent_bits) else 1
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else sign * math.inf
    if exponent:
        mantissa += 1 << mantissa_bits
    else:
        exponent = 1
    return math.ldexp(sign * mantissa, exponent - bias - mantissa_bits)


# %% mistake: fixed_bias
# You took 15 for the bias whatever the format. It follows from the number of exponent bits:
# `2 ** (E - 1) - 1`, so 127 where there are eight.
def decode(pattern, exponent_bits, mantissa_bits):
    mantissa = pattern & ((1 << mantissa_bits) - 1)
    exponent = (pattern >> mantissa_bits) & ((1 << exponent_bits) - 1)
    sign = -1.0 if pattern >> (mantissa_bits + exponent_bits) else 1.0
    if exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else sign * math.inf
    if exponent:
        mantissa += 1 << mantissa_bits
    else:
        exponent = 1
    return sign * math.ldexp(mantissa, exponent - 15 - mantissa_bits)


# %% mistake: bias_of_float32
# You took 127 for the bias whatever the format: that is float32's. It follows from the number of
# exponent bits, `2 ** (E - 1) - 1`, so 15 where there are five.
def decode(pattern, exponent_bits, mantissa_bits):
    mantissa = pattern & ((1 << mantissa_bits) - 1)
    exponent = (pattern >> mantissa_bits) & ((1 << exponent_bits) - 1)
    sign = -1.0 if pattern >> (mantissa_bits + exponent_bits) else 1.0
    if exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else sign * math.inf
    if exponent:
        mantissa += 1 << mantissa_bits
    else:
        exponent = 1
    return sign * math.ldexp(mantissa, exponent - 127 - mantissa_bits)


# %% mistake: bias_off_by_one
# Your bias is `2 ** (E - 1)`, one too many, so that every number comes out half as large. It is
# `2 ** (E - 1) - 1`: the exponent field of the number 1 is `0111…1`.
def decode(pattern, exponent_bits, mantissa_bits):
    mantissa = pattern & ((1 << mantissa_bits) - 1)
    exponent = (pattern >> mantissa_bits) & ((1 << exponent_bits) - 1)
    sign = -1.0 if pattern >> (mantissa_bits + exponent_bits) else 1.0
    if exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else sign * math.inf
    if exponent:
        mantissa += 1 << mantissa_bits
    else:
        exponent = 1
    return sign * math.ldexp(mantissa, exponent - (1 << (exponent_bits - 1)) - mantissa_bits)


# %% mistake: fields_swapped
# You swapped the two widths: the second argument is the number of exponent bits, the third that of
# mantissa bits. In the pattern, too, the exponent comes first.
def decode(pattern, mantissa_bits, exponent_bits):
    mantissa = pattern & ((1 << mantissa_bits) - 1)
    exponent = (pattern >> mantissa_bits) & ((1 << exponent_bits) - 1)
    sign = -1.0 if pattern >> (mantissa_bits + exponent_bits) else 1.0
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else sign * math.inf
    if exponent:
        mantissa += 1 << mantissa_bits
    else:
        exponent = 1
    return sign * math.ldexp(mantissa, exponent - bias - mantissa_bits)


# %% mistake: unsigned_infinity
# Your infinity has no sign. `0xFC00` of float16 is minus infinity: the sign bit counts here too.
def decode(pattern, exponent_bits, mantissa_bits):
    mantissa = pattern & ((1 << mantissa_bits) - 1)
    exponent = (pattern >> mantissa_bits) & ((1 << exponent_bits) - 1)
    sign = -1.0 if pattern >> (mantissa_bits + exponent_bits) else 1.0
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else math.inf
    if exponent:
        mantissa += 1 << mantissa_bits
    else:
        exponent = 1
    return sign * math.ldexp(mantissa, exponent - bias - mantissa_bits)


# %% mistake: all_ones_is_nan
# You read every exponent field of all ones as NaN. With a mantissa of zero it is infinity.
def decode(pattern, exponent_bits, mantissa_bits):
    mantissa = pattern & ((1 << mantissa_bits) - 1)
    exponent = (pattern >> mantissa_bits) & ((1 << exponent_bits) - 1)
    sign = -1.0 if pattern >> (mantissa_bits + exponent_bits) else 1.0
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == (1 << exponent_bits) - 1:
        return math.nan
    if exponent:
        mantissa += 1 << mantissa_bits
    else:
        exponent = 1
    return sign * math.ldexp(mantissa, exponent - bias - mantissa_bits)


# %% alternate: from_text
# Cutting the pattern as text, and summing powers of two.
def decode(pattern, exponent_bits, mantissa_bits):
    text = f"{pattern:0{1 + exponent_bits + mantissa_bits}b}"
    sign, exponent, mantissa = text[0], text[1 : 1 + exponent_bits], text[1 + exponent_bits :]
    bias = 2 ** (exponent_bits - 1) - 1
    fraction = sum(2.0**-place for place, bit in enumerate(mantissa, 1) if bit == "1")
    if "0" not in exponent:
        value = math.nan if fraction else math.inf
    elif "1" not in exponent:
        value = 2.0 ** (1 - bias) * fraction
    else:
        value = 2.0 ** (int(exponent, 2) - bias) * (1 + fraction)
    return math.copysign(value, -1.0 if sign == "1" else 1.0)


# %% alternate: with_fractions
# Exactly, with fractions, and a float only at the end.
def decode(pattern, exponent_bits, mantissa_bits):
    from fractions import Fraction

    sign, rest = divmod(pattern, 1 << (exponent_bits + mantissa_bits))
    exponent, mantissa = divmod(rest, 1 << mantissa_bits)
    top, bias = (1 << exponent_bits) - 1, (1 << (exponent_bits - 1)) - 1
    if exponent == top:
        value = float("nan") if mantissa else float("inf")
    else:
        whole = mantissa + (1 << mantissa_bits) * (exponent > 0)
        value = float(whole * Fraction(2) ** (max(exponent, 1) - bias - mantissa_bits))
    return -value if sign else value
