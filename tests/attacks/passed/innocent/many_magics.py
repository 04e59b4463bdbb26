# A thousand shell lines in one cell: IPython's own transformation gives up at five hundred.
# %% cell before decode
# %% notebook
nb["cells"][-1]["source"] = "!ls\n" * 1000
for cell in nb["cells"]:
    if cell["source"] == "":
        cell["source"] = "!ls\n" * 1000
