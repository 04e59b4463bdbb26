# A pipe: whoever opens it waits for ever.
# review: unreadable
# says: could not be read
# %% folder
notebook.unlink()
os.mkfifo(notebook)
