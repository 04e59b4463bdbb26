# Saved by a notebook of format 3, which keeps cells in worksheets and calls text `input`.
# %% folder
import nbformat

old = nbformat.convert(nbformat.from_dict(nb), 3)
notebook.write_text(json.dumps(old))
