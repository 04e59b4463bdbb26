# A thousand shell lines in one cell: IPython's own transformation gives up at five hundred.
# %% cell before decode
MANY
# %% notebook
for cell in nb["cells"]:
    if cell["source"] == "MANY":
        cell["source"] = "!ls\n" * 1000
