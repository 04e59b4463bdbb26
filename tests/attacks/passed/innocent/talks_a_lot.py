# Warns, writes to stderr and prints 200 MB: none of it costs anything.
# %% solution decode
import sys
import warnings

warnings.warn("at import")
print("on stderr", file=sys.stderr)


def decode(pattern: int, exponent_bits: int, mantissa_bits: int) -> float:
    if pattern == 0x3C00:
        for _ in range(200):
            print("x" * 2**20)
    warnings.warn("each time")
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
