# Hands in modules and settings that a grader's Python, pytest or nbgrader might pick up.
# %% solution decode
import torch


def decode(pattern, exponent_bits, mantissa_bits):
    return 0.0
# %% folder
evil = "import sys\nsys.exit('planted')\n"
for name in ("torch", "conftest", "sitecustomize", "usercustomize", "math", "formats", "nbgrader_config"):
    (folder / f"{name}.py").write_text(evil)
(folder / "pytest.ini").write_text("[pytest]\naddopts = --maxfail=0\n")
(folder / "gradebook.db").write_bytes(b"SQLite format 3\0")
(folder / "evil.pth").write_text("import sys; sys.exit()\n")
(folder / "__pycache__").mkdir()
(folder / "__pycache__" / "torch.cpython-311.pyc").write_bytes(b"\0" * 64)
(folder / "grader").mkdir()
(folder / "grader" / "__init__.py").write_text(evil)
