# A result that claims sixty million elements, and one of 80 MB.
# %% solution decode
def decode(pattern, exponent_bits, mantissa_bits):
    return 2**4000
# %% solution round_to_bf16
def round_to_bf16(x):
    if x.numel() == 12:
        return torch.zeros(1, dtype=torch.int16).view(torch.bfloat16).expand(2**13, 2**13)
    return torch.zeros(4 * 10**7, dtype=torch.int16).view(torch.bfloat16)
