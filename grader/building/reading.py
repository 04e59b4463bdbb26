"""Where PyTorch itself does what an exercise asks: links to its source, at the pinned version.

`site/reading.yml` names files and symbols. Each symbol is looked up in the installed torch, so a
link that would point to nothing stops the build.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import torch
import yaml

from grader.course.course import Course

VERSION = torch.__version__.split("+")[0]
SAYS_LIMIT = 160
"""Most characters of a sentence of PyTorch's that is quoted: two lines of a verdict."""

_TREE = f"https://github.com/pytorch/pytorch/blob/v{VERSION}"


def reading_for(course: Course, exercises: Iterable[str]) -> dict[str, list[list[str]]]:
    """Return what to read after each of these exercises: words in Markdown, an address, and what
    PyTorch says of it in one sentence of its own, empty where it says nothing.

    Raises `ValueError` where the installed torch has no such file or symbol.
    """
    path = course.root / "site" / "reading.yml"
    lists: dict[str, list[str]] = (
        yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    )
    return {
        name: [source_link(entry) for entry in lists[name]] for name in exercises if name in lists
    }


def source_link(entry: str) -> list[str]:
    """Return words, address and sentence for e.g. "torch/nn/modules/module.py Module.apply"."""
    file, _, symbol = entry.partition(" ")
    if file.endswith(".py"):
        line, says = _found_in_python(file, symbol)
    else:
        line, says = _line_in_header(file, symbol), ""
    return [f"`{symbol}` in `{file}`", f"{_TREE}/{file}#L{line}", says]


def _found_in_python(file: str, symbol: str) -> tuple[int, str]:
    """Return the line where a symbol is defined, and its docstring's first sentence."""
    scope: list[ast.stmt] = _parsed(file).body
    line, says = 0, ""
    for name in symbol.split("."):
        found = [node for node in _statements(scope) if getattr(node, "name", None) == name]
        if not found:
            raise ValueError(f"{file} defines no {symbol} in torch {VERSION}")
        node = found[-1]
        decorators = getattr(node, "decorator_list", [])
        line = decorators[0].lineno if decorators else node.lineno
        scope = getattr(node, "body", [])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            says = _first_sentence(ast.get_docstring(node) or "")
    return line, says


def _first_sentence(docstring: str) -> str:
    """Return a docstring's first sentence without Sphinx's marks; nothing where that is a signature."""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    plain = re.sub(r":\w+:(?=`)", "", paragraph).replace("``", "`")
    sentence = re.split(r"(?<=\.)\s+(?=[A-Z])", plain)[0]
    whole = sentence.endswith(".") and "->" not in sentence and len(sentence) <= SAYS_LIMIT
    return sentence if whole else ""


def _statements(scope: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield a scope's statements, also those under `if` and `else`."""
    for node in scope:
        yield node
        if isinstance(node, ast.If):
            yield from _statements([*node.body, *node.orelse])


@cache
def _parsed(file: str) -> ast.Module:
    return ast.parse(_installed(Path(torch.__file__).parents[1] / file).read_text(encoding="utf-8"))


def _line_in_header(file: str, symbol: str) -> int:
    include = Path(torch.__file__).parent / "include"
    # ATen's headers are installed without the folders that hold them in the repository.
    path = include / file.removeprefix("aten/src/")
    lines = _installed(path).read_text(encoding="utf-8").splitlines()
    defines = re.compile(rf"^(?:struct|class) .*\b{symbol}\b.*\{{")
    for wanted in (defines, re.compile(rf"\b{symbol}\b")):
        for number, line in enumerate(lines, 1):
            if wanted.search(line):
                return number
    raise ValueError(f"{file} does not mention {symbol} in torch {VERSION}")


def _installed(path: Path) -> Path:
    if not path.is_file():
        raise ValueError(f"torch {VERSION} is installed without {path.name}")
    return path
