"""What the proof of an exercise rests on, as digests: while they stay, so does the proof.

Code counts by its syntax tree, so that comments, layout and, in the rooms that judge, docstrings
change nothing. Trees differ between versions of Python: digests are compared on one of them.
"""

from __future__ import annotations

import ast
import hashlib
import json
import platform
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import torch

from grader.course.course import Chapter, Exercise, read_reference
from grader.course.imports import PACKAGE, closure
from grader.submission.program import slice_program, statements
from grader.verdict.known import check_files
from grader.verdict.probe_versions import asked_probes, probe_names, probe_versions

JUDGES = ("proving/validate.py", "proving/trial.py", "inside/instruments/*.py")
"""Where a proof begins, and what probes measure with. All that these import, and so on, judges."""

UNHEARD = tuple(f"verdict/{name}.py" for name in ("relations", "known", "torch_internals"))
"""What they import and no proof hears: relations, which are said beside a verdict; what notebooks keep of
known mistakes, which a proof runs itself; the list of torch's insides, by which a verdict warns of
another torch."""


def python_version() -> str:
    """Return Python's version as far as digests depend on it."""
    return ".".join(platform.python_version_tuple()[:2])


def torch_version() -> str:
    """Return torch's version without the kind of its build."""
    return torch.__version__.split("+")[0]


@cache
def judges_digest() -> str:
    """Return the digest of all code that judges, whatever the exercise."""
    return _digest(_tree(path, docstrings=False) for path in judging_files())


def judging_files() -> list[Path]:
    """Return the files of that code."""
    return closure(
        (path for pattern in JUDGES for path in PACKAGE.glob(pattern)),
        without=[PACKAGE / name for name in UNHEARD],
    )


def exercise_digest(chapter: Chapter, exercise: Exercise) -> str:
    """Return the digest of what belongs to one exercise, from its card to its known answers."""
    checks = check_files(chapter, exercise)
    return _digest(
        [
            json.dumps(_cells(chapter, exercise), sort_keys=True),
            json.dumps(_program(chapter, exercise)),
            *(_tree(path, docstrings=True) for path in checks),
            json.dumps(_probes(chapter, checks)),
            chapter.answers(exercise.id).read_text(encoding="utf-8"),
            json.dumps(_equivalent(chapter).get(exercise.id)),
            torch_version(),
        ]
    )


def notebook_digest(chapter: Chapter) -> str:
    """Return the digest of what the outputs rest on: the reference notebook, checks, probes, answers.

    The code that judges is not in it: whether it judges as before, the proofs tell.
    """
    tried = chapter.graders / "tried"  # what is said of those is measured; no output rests on it
    files = [
        path
        for path in chapter.graders.rglob("*")
        if path.suffix in {".py", ".md", ".toml"} and tried not in path.parents
    ]
    whole = hashlib.sha256(chapter.reference.read_bytes())
    for path in sorted(files):
        whole.update(f"\0{path.relative_to(chapter.graders)}\0".encode() + path.read_bytes())
    return whole.hexdigest()[:16]


def _tree(path: Path, *, docstrings: bool) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if not docstrings:
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = [n for n in node.body if isinstance(n, ast.Expr) and _is_text(n.value)]
                node.body = [statement for statement in node.body if statement not in text]
    return f"{path.name} {ast.dump(tree)}"


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _cells(chapter: Chapter, exercise: Exercise) -> list[object]:
    """Return what the released notebook says from the exercise's card to its stub."""
    cells: list[object] = [list(chapter.preload)]
    begun = False
    for cell in chapter.notebook["cells"]:
        begun = begun or cell.get("id") == f"{exercise.id}-card"
        if begun:
            cells.append([cell["source"], cell["metadata"]])
        if cell.get("id") == exercise.id:
            break
    return cells


def _program(chapter: Chapter, exercise: Exercise) -> list[str]:
    """Return the reference's program: its cell and what it names of the given ones."""
    names = [other.id for other in chapter.exercises]
    return statements(slice_program(exercise.id, names, read_reference(chapter)))


def _probes(chapter: Chapter, checks: Iterable[Path]) -> dict[str, str]:
    """Return the versions of those probes whose names the checks spell out."""
    asked = asked_probes(chapter.probes, checks)
    return {name: version for name, version in _versions(chapter).items() if name in asked}


@cache
def _versions(chapter: Chapter) -> dict[str, str]:
    return probe_versions(chapter.probes, probe_names(chapter.probes))


@cache
def _equivalent(chapter: Chapter) -> dict[str, dict[str, str]]:
    path = chapter.graders / "equivalent.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _digest(texts: Iterable[str]) -> str:
    whole = hashlib.sha256()
    for text in texts:
        whole.update(text.encode() + b"\0")
    return whole.hexdigest()[:16]
