"""Which version of its probes a verdict rests on."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Collection
from pathlib import Path

from grader.course.cells import Cell, Kind
from grader.inside.probe import probe_modules
from grader.submission.program import slice_program


def probe_versions(path: Path, names: Collection[str]) -> dict[str, str]:
    """Return for each of a chapter's probes a digest of its code and of all that it names there.

    Comments and layout do not count.
    """
    modules = probe_modules(path)
    given = [Cell(Kind.GIVEN, m.stem, m.read_text(encoding="utf-8")) for m in modules]
    versions = {}
    for name in sorted(names):
        program = slice_program(name, (), [*given, Cell(Kind.SOLUTION, name, name)])
        text = "\n".join(ast.dump(ast.parse(source)) for _, source in program.parts)
        versions[name] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return versions
