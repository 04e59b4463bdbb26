# Brings a helper module, a picture and a folder of data along, and a timestamp.
# %% folder
(folder / "helper.py").write_text("x = 1\n")
(folder / "plot.png").write_bytes(b"\x89PNG" + bytes(1000))
(folder / "data" / "more").mkdir(parents=True)
(folder / "data" / "more" / "words with spaces.txt").write_text("words")
(folder / "timestamp.txt").write_text("2030-01-31 09:00:00 UTC")
