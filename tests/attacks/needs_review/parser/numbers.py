# A file of six million numbers: 24 MB, which would be 200 in memory.
# review: reading it took more than
# says: could not be read
# %% folder
notebook.write_text("[" + "1e5," * 6_000_000 + "0]")
