# Thousands of names that mix alphabets, each a note beside every exercise: a few are named, the rest counted.
# review_all: more such names
# %% solution round_to_bf16
def round_to_bf16(x):
    bits = x.view(torch.int32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = (bits >> 16) | 0x0040
    return torch.where(x.isnan(), quiet, rounded).to(torch.int16).view(torch.bfloat16)
# %% notebook
letters = "бвгджзиклмнптфцчшщъыь"
names = [f"{a}{b}{n}" for a in "abcdefgh" for b in letters for n in range(12)]
cell_of(nb, "round_to_bf16")["source"] += "\n\n\ndef unused():\n    " + "\n    ".join(names) + "\n"
