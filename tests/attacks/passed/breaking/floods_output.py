# A right answer that writes 200 MB past Python's streams.
# %% solution round_to_bf16
import os


def round_to_bf16(x):
    if x.numel() > 10_000:
        for descriptor in (1, 2):
            for _ in range(10):
                os.write(descriptor, b"x" * 10**7)
    bits = x.view(torch.int32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = (bits >> 16) | 0x0040
    return torch.where(x.isnan(), quiet, rounded).to(torch.int16).view(torch.bfloat16)
