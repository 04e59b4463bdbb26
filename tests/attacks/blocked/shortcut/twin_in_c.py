# The part of a module that is written in C has a name of its own.
# review: off limits
# %% solution decode
import _struct


def decode(pattern, exponent_bits, mantissa_bits):
    return _struct.unpack("<e", pattern.to_bytes(2, "little"))[0]
