# Roles of the wrong type, names that are lists, ids that are ours: nothing of it may stop the grader.
# %% solution decode
def decode(pattern, exponent_bits, mantissa_bits):
    return 0.0
# %% notebook
code = {"cell_type": "code", "metadata": {}, "source": "y = 1", "outputs": [], "execution_count": None}
for role in ([], "x", 5, None, {"grade_id": []}, {"grade_id": {}}, {"grade_id": None, "grade": [1]},
             {"grade_id": 5, "solution": "yes"}, {"grade_id": "decode", "grade": "no"}):
    nb["cells"].append(code | {"metadata": {"nbgrader": role, "undertorch": role, "tags": role}})
nb["cells"].append(code | {"metadata": [], "id": "own-decode"})
nb["cells"].append(code | {"metadata": {"undertorch_intake": 1}, "id": 7})
nb["metadata"] = {"undertorch_intake": {"notes": {}}, "undertorch": 3, "nbgrader": [], "kernelspec": {"name": "../../evil"}}
