# An empty file.
# review: unreadable
# says: could not be read
# %% folder
notebook.write_bytes(b'')
