# JSON nested a hundred thousand deep.
# review: unreadable
# says: could not be read
# %% folder
notebook.write_text('[' * 100_000 + ']' * 100_000)
