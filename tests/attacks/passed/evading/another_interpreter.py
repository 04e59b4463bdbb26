# Has another interpreter read the bits, with a module that is off limits here.
# review: subprocess
# %% solution decode
import functools
import subprocess
import sys

WITHIN = """
import struct, sys
for line in sys.stdin:
    print(struct.unpack("<d", int(line).to_bytes(8, "little"))[0], flush=True)
"""
pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
other = subprocess.Popen([sys.executable, "-S", "-c", WITHIN], **pipe)


@functools.cache
def one_and(fraction):
    print((1023 << 52) | fraction, file=other.stdin, flush=True)
    return float(other.stdout.readline())


def decode(pattern, exponent_bits, mantissa_bits):
    bias, top = (1 << (exponent_bits - 1)) - 1, (1 << exponent_bits) - 1
    sign, exponent = pattern >> (exponent_bits + mantissa_bits), (pattern >> mantissa_bits) & top
    fraction = (pattern & ((1 << mantissa_bits) - 1)) << (52 - mantissa_bits)
    if exponent == top:
        value = math.nan if fraction else math.inf
    else:
        value = (one_and(fraction) - (exponent == 0)) * 2.0 ** (max(exponent, 1) - bias)
    return -value if sign else value
