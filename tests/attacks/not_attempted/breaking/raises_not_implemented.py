# Claims that nothing was written: no error, no points.
# %% solution decode
def decode(pattern, exponent_bits, mantissa_bits):
    raise NotImplementedError
