# A name that mixes alphabets: a Cyrillic letter stands for a Latin one. Graded as ever, and flagged.
# review_all: mixes alphabets
# %% solution round_to_bf16
def rоund(x):
    return x


def round_to_bf16(x):
    bits = x.view(torch.int32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = (bits >> 16) | 0x0040
    return torch.where(x.isnan(), quiet, rounded).to(torch.int16).view(torch.bfloat16)
