# Never answers, and does not listen to signals.
# says: processor time
# %% solution decode
import signal

for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)


def decode(pattern, exponent_bits, mantissa_bits):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
