"""Which version of its probes a verdict rests on."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

from grader.course.cells import Cell, Kind
from grader.inside.probe import probe_modules
from grader.submission.program import slice_program


def probe_versions(path: Path, names: Collection[str]) -> dict[str, str]:
    """Return for each of a chapter's probes a digest of its code and of all that it names there.

    Comments and layout do not count.
    """
    versions = {}
    for name, parts in probe_texts(path, names).items():
        text = "\n".join(ast.dump(ast.parse(part)) for part in parts)
        versions[name] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return versions


def probe_texts(path: Path, names: Collection[str]) -> dict[str, list[str]]:
    """Return the code of each of a chapter's probes, and of all that it names there, as text."""
    modules = probe_modules(path)
    given = [Cell(Kind.GIVEN, m.stem, m.read_text(encoding="utf-8")) for m in modules]
    texts = {}
    for name in sorted(names):
        program = slice_program(name, (), [*given, Cell(Kind.SOLUTION, name, name)])
        texts[name] = [text for _, text in program.parts]
    return texts


def asked_probes(path: Path, checks: Iterable[Path]) -> set[str]:
    """Return those of a chapter's probes whose names the checks spell out."""
    words = {
        word
        for check in checks
        for node in ast.walk(ast.parse(check.read_text(encoding="utf-8")))
        for word in _words(node)
    }
    return words & probe_names(path)


def _words(node: ast.AST) -> Iterator[str]:
    for field in ("id", "arg", "attr", "name"):
        word = getattr(node, field, None)
        if isinstance(word, str):
            yield word


@cache
def probe_names(path: Path) -> frozenset[str]:
    """Return the names of a chapter's probes, read as text: importing them would take seconds."""
    return frozenset(
        node.name
        for module in probe_modules(path)
        for node in ast.parse(module.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and any(map(_is_probe, node.decorator_list))
    )


def _is_probe(mark: ast.expr) -> bool:
    named = mark.func if isinstance(mark, ast.Call) else mark
    return ast.unparse(named).endswith("probe")
