# A timestamp that is none: nbgrader would stop the whole batch.
# review: timestamp.txt
# %% folder
(folder / "timestamp.txt").write_bytes(b"\xff\xfeyesterday")
