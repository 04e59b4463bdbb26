# Source that overflows a parser's or a compiler's stack.
# %% solution decode
# %% notebook
cell_of(nb, "decode")["source"] = "decode = " + "-" * 60_000 + "1"
