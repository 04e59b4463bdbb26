"""Which version of its probes a verdict rests on."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from grader.inside.probe import probe_modules
from grader.submission.names import bound_by, used_by
from grader.submission.program import statements_of


def probe_versions(path: Path, names: Collection[str]) -> dict[str, str]:
    """Return for each of a chapter's probes a digest of its code and of all that it names there.

    Comments, layout, and where in its module a statement stands do not count.
    """
    versions = {}
    for name, texts in probe_texts(path, names).items():
        text = "\n".join(ast.dump(ast.parse(part)) for part in texts)
        versions[name] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return versions


def probe_texts(path: Path, names: Collection[str]) -> dict[str, list[str]]:
    """Return the statements of each of a chapter's probes, and of all that it names there, as text.

    A module's name is its own: what another binds under the same name does not count. Of an import
    the line counts that brings the name that is used.
    """
    modules = {m.stem: _statements(m.read_text(encoding="utf-8")) for m in probe_modules(path)}
    return {name: _reached(modules, name) for name in sorted(names)}


@dataclass(frozen=True)
class _Statement:
    """A statement of a module. `brings` says which names it takes from which of its neighbours."""

    text: str
    binds: frozenset[str]
    uses: frozenset[str]
    brings: tuple[tuple[str, str], ...] = ()


_ALL = "*"
"""Stands for all names of a module."""

_Modules = dict[str, tuple[_Statement, ...]]


def _reached(modules: _Modules, probe: str) -> list[str]:
    """Return the texts that a probe of that name needs, module by module, as they stand."""
    pending = [(module, probe) for module in modules]
    asked: set[tuple[str, str]] = set()
    chosen: set[tuple[str, int]] = set()
    while pending:
        module, name = asking = pending.pop()
        if asking in asked:
            continue
        asked.add(asking)
        for index, one in enumerate(modules.get(module, ())):
            if (name in one.binds or name == _ALL) and (module, index) not in chosen:
                chosen.add((module, index))
                pending += [(module, used) for used in one.uses]
                pending += one.brings
    return [modules[module][index].text for module, index in sorted(chosen)]


@cache
def _statements(source: str) -> tuple[_Statement, ...]:
    found: list[_Statement] = []
    for text, nodes in statements_of(source):
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                found += _lines_of_import(node)
            else:
                brings = [
                    (inner.module, alias.name)
                    for inner in ast.walk(node)
                    if isinstance(inner, ast.ImportFrom) and inner.level and inner.module
                    for alias in inner.names
                ]
                binds, uses = frozenset(bound_by(node)), frozenset(used_by(node))
                found.append(_Statement(text, binds, uses, tuple(brings)))
    return tuple(found)


def _lines_of_import(node: ast.Import | ast.ImportFrom) -> Iterator[_Statement]:
    """Yield an import as lines that bring one name each."""
    for alias in node.names:
        brings: tuple[tuple[str, str], ...] = ()
        if isinstance(node, ast.Import):
            line: ast.stmt = ast.Import([alias])
        else:
            line = ast.ImportFrom(node.module, [alias], node.level)
            if node.level:
                brings = ((node.module, alias.name) if node.module else (alias.name, _ALL),)
        yield _Statement(ast.unparse(line), frozenset(bound_by(line)), frozenset(), brings)


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
