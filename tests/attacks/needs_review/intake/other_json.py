# JSON that is no notebook.
# review: unreadable
# says: could not be read
# %% folder
notebook.write_text('[1, 2]')
