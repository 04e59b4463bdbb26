# Two hundred thousand cells.
# review: unreadable
# says: could not be read
# %% notebook
cell = {"cell_type": "code", "metadata": {}, "source": "a = 1", "outputs": [], "execution_count": None}
nb["cells"] += [cell] * 200_000
