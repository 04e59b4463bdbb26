# A copied test cell, a copied solution cell whose last copy is right, and cells in another order.
# %% notebook
good = cell_of(nb, "decode")
early = copy.deepcopy(good)
early["source"] = "def decode(p, e, m):\n    return 0.0"
early.pop("id")
test = copy.deepcopy(cell_of(nb, "decode-grade"))
plain = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": 'grade("decode")'}
nb["cells"] = [early, test, plain, *nb["cells"], copy.deepcopy(test), {"cell_type": "raw", "metadata": {}, "source": "?"}]
nb["cells"].remove(good)
nb["cells"].append(good)
