# A notebook in UTF-16, as some editors save: read as UTF-8 it is no JSON.
# review: unreadable
# says: could not be read
# %% folder
notebook.write_text(json.dumps(nb), encoding="utf-16")
