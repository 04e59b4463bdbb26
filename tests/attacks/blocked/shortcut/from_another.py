# A function of a module that is off limits, imported from another that has it.
# review: off limits
# %% solution decode
from pickle import unpack


def decode(pattern, exponent_bits, mantissa_bits):
    return unpack("<e", pattern.to_bytes(2, "little"))[0]
