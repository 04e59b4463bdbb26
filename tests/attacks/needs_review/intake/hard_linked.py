# A hard link to the reference notebook.
# review: unreadable
# says: could not be read
# %% folder
notebook.unlink()
os.link(course / 'solutions' / 'ch01_formats' / 'formats.ipynb', notebook)
