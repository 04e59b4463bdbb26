# Two notebooks, neither of the right name: which counts?
# review: unreadable
# says: could not be read
# %% folder
notebook.rename(folder / 'a.ipynb')
(folder / 'b.ipynb').write_text('{}')
