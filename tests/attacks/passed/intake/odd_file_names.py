# File names with markup, newlines, escapes and bytes that are no text.
# review: name
# %% folder
for name in ("<img src=x onerror=alert(1)>.txt", "a\nb.txt", "\x1b[2J.txt", "-rf", "[ab].txt", "`id`.txt"):
    (folder / name).write_text("x")
open(os.fsencode(folder) + b"/\xff.txt", "w").close()
os.symlink("/etc/passwd", folder / "<script>alert(1)<|script>.py")
