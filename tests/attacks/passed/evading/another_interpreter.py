# Has another interpreter read the bits, with a module that is off limits here.
# review: subprocess
# %% solution decode
import subprocess
import sys

WITHIN = """
import struct, sys
for line in sys.stdin:
    print(struct.unpack("<d", int(line).to_bytes(8, "little"))[0], flush=True)
"""
pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
other = subprocess.Popen([sys.executable, "-S", "-c", WITHIN], **pipe)


def decode(pattern, exponent_bits, mantissa_bits):
    bias, bits = (1 << (exponent_bits - 1)) - 1, pattern << (52 - mantissa_bits)
    sign, bits = pattern >> (exponent_bits + mantissa_bits), bits & ((1 << (52 + exponent_bits)) - 1)
    if bits >> 52 == (1 << exponent_bits) - 1:
        value = math.nan if bits & ((1 << 52) - 1) else math.inf
    else:
        print(bits, file=other.stdin, flush=True)
        value = float(other.stdout.readline()) * 2.0**512 * 2.0 ** (511 - bias)
    return -value if sign else value
