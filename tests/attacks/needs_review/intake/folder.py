# A folder of the notebook's name.
# review: unreadable
# says: could not be read
# %% folder
notebook.unlink()
notebook.mkdir()
(notebook / 'x.txt').write_text('x')
