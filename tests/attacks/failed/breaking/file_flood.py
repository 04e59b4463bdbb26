# Fills the disk, /tmp and /dev/shm.
# says: OSError
# %% solution decode
def decode(pattern, exponent_bits, mantissa_bits):
    for number in range(100):
        with open(f"/tmp/{number}", "wb") as file:
            file.truncate(2**40)
