# Makes the test cells text, and deletes the solution cell's role.
# %% solution decode
def decode(pattern, exponent_bits, mantissa_bits):
    return 0.0
# %% notebook
test = cell_of(nb, "decode-grade")
test["cell_type"] = "markdown"
test.pop("outputs")
cell_of(nb, "decode")["metadata"]["nbgrader"] = ["solution"]
