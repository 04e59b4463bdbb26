# A megabyte of small statements, each a chance for work that grows with the square of their number.
# review: unreadable
# says: of code
# %% cell before decode
# %% notebook
nb["cells"][-1]["source"] = "a=1\n" * 250_000
