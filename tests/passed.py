"""Costly tests run for what has changed since they passed, and for some more by turns.

Three kinds of tests are costly: those of explorers, of pages in a browser, and of whole notebooks. For
each kind a record says what passed: a digest for each explorer, page or notebook, of all that its tests
rest on. `make prove` runs all and writes the records. Who names tests on the command line gets them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

from grader.course.course import Course
from grader.course.imports import closure
from grader.proving.digest import notebook_digest
from grader.proving.ledger import turn
from tests import ROOT
from tests.proving.commit import commit

RECORDS = ROOT / "tests" / "passed"
OPTION = "--prove-all"

EXPLORERS = sorted(path.name for path in (ROOT / "site/explorers").iterdir() if path.is_dir())
EXPLORER_TESTS = ROOT / "tests" / "explorers"
NOTEBOOK_TESTS = ROOT / "tests" / "live" / "test_run_all.py"
PAGE_TESTS = ROOT / "tests" / "site" / "test_pages.py"

SHARED = (
    "constraints.txt",
    "mkdocs.yml",
    "site/*.py",
    "site/assets/*.css",
    "site/assets/*.js",
    "site/explorers/*.css",
    "site/explorers/*.js",
    "site/explorers/inline.py",
    "tests/browser.py",
    "tests/conftest.py",
)
"""What the tests of each explorer rest on, beside its own files and what they import."""


def chosen(kind: str, digests: Mapping[str, str], of: int) -> set[str]:
    """Return what changed since it passed, and every `of`-th by turns."""
    passed = _read(kind)
    changed = {name for name, digest in digests.items() if passed.get(name) != digest}
    return changed | turn(sorted(digests), commit()[0], of)


def write(kind: str, digests: Mapping[str, str]) -> None:
    """Put down what passed."""
    RECORDS.mkdir(exist_ok=True)
    text = json.dumps(dict(digests), indent=1, sort_keys=True)
    (RECORDS / f"{kind}.json").write_text(f"{text}\n", encoding="utf-8")


def _read(kind: str) -> dict[str, str]:
    file = RECORDS / f"{kind}.json"
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def all_run(config: pytest.Config) -> bool:
    """Say whether tests run whatever changed: because all are to be proved, or because they are named."""
    return bool(config.getoption(OPTION)) or config.args != config.getini("testpaths")


def left_out(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the tests of explorers and notebooks that need not run."""
    explorers = chosen("explorers", explorer_digests(), of=len(EXPLORERS))
    notebooks = chosen("notebooks", notebook_digests(), of=len(notebook_digests()))
    return [
        item
        for item in items
        if explorer_of(item.path) not in {None, *explorers}
        or (item.path == NOTEBOOK_TESTS and not any(f"[{name}]" in item.name for name in notebooks))
    ]


# ── Explorers ────────────────────────────────────────────────────────────────


def explorer_of(test: Path) -> str | None:
    """Return the explorer that a file of tests is about, None where it is not about one."""
    name = test.stem.removeprefix("test_").removesuffix("_page")
    return name if test.parent == EXPLORER_TESTS and name in EXPLORERS else None


def explorer_digests() -> dict[str, str]:
    """Return the digest of what the tests of each explorer rest on."""
    return {name: _explorer_digest(name) for name in EXPLORERS}


def _explorer_digest(explorer: str) -> str:
    tests = [path for path in EXPLORER_TESTS.glob("*.py") if _is_of(path, explorer)]
    pages = ROOT / "site" / "explorers"
    files = {*(pages / explorer).rglob("*"), pages / f"{explorer}.md", *closure(tests)}
    return _digest({*files, *(path for pattern in SHARED for path in ROOT.glob(pattern))})


def _is_of(path: Path, explorer: str) -> bool:
    """Say whether a file is about the explorer, or helps the tests of all."""
    if path.stem.startswith("test_"):
        return explorer_of(path) == explorer
    return not any(other in path.stem for other in EXPLORERS if other != explorer)


# ── Notebooks, run as a student runs them ────────────────────────────────────


@cache
def notebook_digests() -> dict[str, str]:
    """Return the digest of what running each released notebook rests on."""
    student = (ROOT / "grader" / "student").glob("*.py")
    shared = _digest({*closure([*student, NOTEBOOK_TESTS]), ROOT / "constraints.txt"})
    return {
        chapter.id: _hashed(notebook_digest(chapter), _digest({chapter.released}), shared)
        for chapter in Course(ROOT).chapters()
    }


# ── Pages, as they are built ─────────────────────────────────────────────────


def pages_due(built: Path, config: pytest.Config) -> list[str]:
    """Return the pages to be looked at: where nothing changed, a tenth of them has its turn."""
    digests = page_digests(built)
    return sorted(digests if all_run(config) else chosen("pages", digests, of=10))


def page_digests(built: Path) -> dict[str, str]:
    """Return the digest of each page of a built site, and of what any of them may load or show."""
    pages = {path.relative_to(built).as_posix(): path for path in built.rglob("*.html")}
    loaded = [path for path in built.rglob("*") if path.suffix in {".css", ".js", ".svg", ".woff2"}]
    shared = _hashed(
        _digest(set(loaded), built), _digest({PAGE_TESTS, *PAGE_TESTS.parent.rglob("axe.min.js")})
    )
    return {name: _hashed(shared, _digest({path}, built)) for name, path in pages.items()}


def _digest(files: set[Path], root: Path = ROOT) -> str:
    """Return the digest of files, by name and content."""
    whole = hashlib.sha256()
    for path in sorted(path for path in files if path.is_file() and path.suffix != ".pyc"):
        whole.update(f"\0{path.relative_to(root)}\0".encode() + path.read_bytes())
    return whole.hexdigest()[:16]


def _hashed(*digests: str) -> str:
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:16]
