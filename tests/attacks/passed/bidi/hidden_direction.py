# Characters that make source read otherwise than it runs: graded as ever, and flagged.
# review_all: reads otherwise than it runs
# %% solution round_to_bf16
def round_to_bf16(x):
    # @BIDI@ return x
    bits = x.view(torch.int32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = (bits >> 16) | 0x0040
    return torch.where(x.isnan(), quiet, rounded).to(torch.int16).view(torch.bfloat16)
# %% notebook
cell = cell_of(nb, "round_to_bf16")
cell["source"] = cell["source"].replace("@BIDI@", "\u202e\u2066")
