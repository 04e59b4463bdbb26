# A link to the reference notebook: nbgrader would follow it.
# review: unreadable
# says: could not be read
# %% folder
notebook.unlink()
os.symlink(course / 'solutions' / 'ch01_formats' / 'formats.ipynb', notebook)
