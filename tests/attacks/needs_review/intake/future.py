# A format of the future.
# review: unreadable
# says: could not be read
# %% folder
nb['nbformat'] = 9
notebook.write_text(json.dumps(nb))
