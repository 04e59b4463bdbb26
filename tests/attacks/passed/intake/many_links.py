# Two thousand links with long names, each a note beside every exercise: a few are named, the rest counted.
# review: more were put aside
# %% folder
for number in range(2000):
    os.symlink("/etc/passwd", folder / f"{number}{'x' * 200}")
