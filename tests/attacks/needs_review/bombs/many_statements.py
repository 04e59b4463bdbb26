# A megabyte of small statements, each a chance for work that grows with the square of their number.
# review: unreadable
# says: of code
# %% cell before decode
MANY
# %% notebook
for cell in nb["cells"]:
    if cell["source"] == "MANY":
        cell["source"] = "a=1\n" * 250_000
