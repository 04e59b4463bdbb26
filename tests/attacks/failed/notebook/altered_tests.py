# Changes the test cells: their text, their points, their type, their number, and who owns what.
# %% solution decode
def decode(pattern, exponent_bits, mantissa_bits):
    return 0.0
# %% solution round_to_bf16
def round_to_bf16(x):
    return x
# %% notebook
test = cell_of(nb, "decode-grade")
test["source"] = "4.0"
test["metadata"]["nbgrader"] |= {"points": 999, "checksum": "0" * 32, "solution": True, "locked": False}
other = cell_of(nb, "round_to_bf16-grade")
nb["cells"].remove(other)
for points in (6, -6, "many"):
    twin = copy.deepcopy(other)
    twin["id"] = f"twin{points}"
    twin["metadata"]["nbgrader"] |= {"points": points}
    nb["cells"].insert(0, twin)
    twin["source"] = "6.0"
fresh = copy.deepcopy(test)
fresh["metadata"]["nbgrader"] |= {"grade_id": "bonus", "points": 100, "solution": False}
nb["cells"].append(fresh)
