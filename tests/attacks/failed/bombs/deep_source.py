# Source that overflows a parser's or a compiler's stack.
# review: too deep to be read
# %% solution decode
# %% notebook
cell_of(nb, "decode")["source"] = "decode = " + "-" * 60_000 + "1"
