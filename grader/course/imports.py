"""What files import of this package, and so on: all that a file's meaning rests on here."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path

import grader

PACKAGE = Path(grader.__file__).resolve().parent


def closure(files: Iterable[Path], without: Collection[Path] = ()) -> list[Path]:
    """Return the files with all that they import of this package, and so on, in order."""
    found: set[Path] = set()
    pending = list(files)
    while pending:
        path = pending.pop()
        if path not in found and path not in without:
            found.add(path)
            pending += _imported(path)
    return sorted(found)


@cache
def _imported(path: Path) -> tuple[Path, ...]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(file for name in names if (file := _file_of(name)) is not None)


def _file_of(name: str) -> Path | None:
    package, _, rest = name.partition(".")
    if package != PACKAGE.name or not rest:
        return None
    file = PACKAGE.joinpath(*rest.split(".")).with_suffix(".py")
    return file if file.is_file() else None
