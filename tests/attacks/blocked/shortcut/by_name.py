# The built-in, fetched by its name put together at run time.
# review: off limits
# %% solution round_to_bf16
def round_to_bf16(x):
    return getattr(x, "bfl" + "oat16")()
