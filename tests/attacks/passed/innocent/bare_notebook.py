# Without kernelspec, ids or metadata, and with sources as lists of lines.
# %% notebook
for cell in nb["cells"]:
    cell.pop("id", None)
    cell["source"] = cell["source"].splitlines(keepends=True) if isinstance(cell["source"], str) else cell["source"]
nb["metadata"] = {}
nb["nbformat_minor"] = 0
