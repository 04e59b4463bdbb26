# The test cells are gone; the reference's text is all there.
# %% notebook
nb["cells"] = [cell for cell in nb["cells"] if not cell["metadata"].get("nbgrader", {}).get("grade")]
