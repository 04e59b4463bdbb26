# Writes a gradebook, other submissions, startup files and result files.
# review: Memory is reached past Python
# says: RuntimeError: wrote 0
# %% solution decode
import os
import sqlite3

TARGETS = [
    "@ROOT@/gradebook.db",
    "@ROOT@/submitted/mmm-victim/ch01_formats/formats.ipynb",
    "@ROOT@/autograded/mmm-victim/ch01_formats/formats.ipynb",
    "@ROOT@/home/.ipython/profile_default/startup/00.py",
    "/undertorch/chapter/probes/formats.py",
    "/undertorch/grader/inside/serve.py",
    "/usr/lib/python3/sitecustomize.py",
    os.path.join(os.path.dirname(os.__file__), "usercustomize.py"),
    os.path.join(os.path.dirname(torch.__file__), "evil.pth"),
    "/proc/sys/kernel/core_pattern",
    "/etc/passwd",
]


def decode(pattern, exponent_bits, mantissa_bits):
    wrote = 0
    for target in TARGETS:
        try:
            with open(target, "a"):  # open for write and expect a refusal; nothing is written
                wrote += 1
        except OSError:
            pass
    try:
        sqlite3.connect("@ROOT@/gradebook.db").execute("update grade set auto_score = 4")
        wrote += 1
    except sqlite3.Error:
        pass
    raise RuntimeError(f"wrote {wrote}")
