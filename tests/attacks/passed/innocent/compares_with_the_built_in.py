# Asserts, loops and prints beside the answer compare it with the built-in.
# %% solution decode
import struct


def decode(pattern: int, exponent_bits: int, mantissa_bits: int) -> float:
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


assert decode(0x3C00, 5, 10) == struct.unpack("<e", b"\x00\x3c")[0]
for p in (0, 1, 0x3C00):
    print(p, decode(p, 5, 10), torch.tensor([p], dtype=torch.int16).view(torch.float16).item())
x = torch.rand(5)
if x.bfloat16().float().sum() > 0:
    print(x.to(torch.bfloat16))
