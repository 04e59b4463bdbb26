"""Check files for the tests of the runner."""

from pathlib import Path
from textwrap import dedent


def written(folder: Path, text: str, name: str = "test_it.py") -> Path:
    """Write a check file and return its path."""
    path = folder / name
    path.write_text(dedent(text))
    return path
