# A range is three numbers. A list of this one is 8 GB.
# says: a range of more than
# %% solution round_to_bf16
def round_to_bf16(*inputs):
    return range(150_000_000)
