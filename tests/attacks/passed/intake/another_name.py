# The notebook under another name, the only one there is.
# says: final (2).ipynb
# %% folder
notebook.rename(folder / "final (2).ipynb")
