# A thousand files and folders, and one that feedback would be written over.
# review: put aside
# %% folder
for number in range(1000):
    (folder / f"folder{number}").mkdir()
    (folder / f"folder{number}" / "x.txt").write_text("x")
(folder / "formats.html").write_text("<script>alert(1)</script>")
