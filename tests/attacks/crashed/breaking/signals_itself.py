# Dies of a signal in the middle of an answer, and registers what should run at the end.
# says: SIGSEGV
# %% solution decode
import atexit
import os
import signal

atexit.register(lambda: open("/tmp/late", "w"))


def decode(pattern, exponent_bits, mantissa_bits):
    os.kill(os.getpid(), signal.SIGSEGV)
