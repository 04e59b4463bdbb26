# A folder without a notebook.
# review: unreadable
# says: could not be read
# %% folder
notebook.unlink()
