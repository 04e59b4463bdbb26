# Links, pipes, sockets, hard links, deep and large files beside a right answer: put aside.
# review: put aside
# %% folder
import stat

os.symlink(course / "secret.txt", folder / "notes.txt")
os.symlink(course, folder / "everything")
os.symlink("/etc/passwd", folder / "timestamp.txt")
os.link(course / "secret.txt", folder / "hard.txt")
os.mkfifo(folder / "pipe.py")
os.mkfifo(folder / "sub.ipynb")
os.mknod(folder / "s", stat.S_IFSOCK | 0o600)  # bind() takes 107 bytes of path at most
deep = folder.joinpath(*["d"] * 20)
deep.mkdir(parents=True)
(deep / "x.txt").write_text("x")
with open(folder / "large.bin", "wb") as file:
    file.truncate(100 * 2**20)
