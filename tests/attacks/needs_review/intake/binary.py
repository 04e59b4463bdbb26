# Random bytes.
# review: unreadable
# says: could not be read
# %% folder
notebook.write_bytes(os.urandom(5000))
