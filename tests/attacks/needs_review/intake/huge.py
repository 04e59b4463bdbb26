# A hundred megabytes, most of it holes.
# review: unreadable
# says: 100 MB
# %% folder
with open(notebook, "r+b") as file:
    file.truncate(100 * 2**20)
