"""Which explorers' tests run: those of what has changed since they passed, and of one more by turns.

`passed.json` has a digest for each explorer, of all that its tests rest on. `make prove` runs the
tests of every explorer and writes it. Who names an explorer's tests on the command line gets them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from grader.proving.digest import closure
from grader.proving.ledger import State, turn
from tests import ROOT
from tests.proving.commit import commit

TESTS = ROOT / "tests" / "explorers"
PAGES = ROOT / "site" / "explorers"
FILE = TESTS / "passed.json"

EXPLORERS = sorted(path.name for path in PAGES.iterdir() if path.is_dir())

SHARED = (
    "constraints.txt",
    "mkdocs.yml",
    "site/*.py",
    "site/assets/*.css",
    "site/assets/*.js",
    "site/explorers/explorer.*",
    "site/explorers/inline.py",
    "tests/browser.py",
    "tests/conftest.py",
)
"""What the tests of each explorer rest on, beside its own files and what they import."""


def explorer_of(test: Path) -> str | None:
    """Return the explorer that a file of tests is about, None where it is not about one."""
    name = test.stem.removeprefix("test_").removesuffix("_page")
    return name if test.parent == TESTS and name in EXPLORERS else None


@cache
def state(explorer: str) -> State:
    """Say whether an explorer's tests would rest on what they passed with."""
    return State.HOLDS if _passed().get(explorer) == digest(explorer) else State.CHANGED


def chosen() -> set[str]:
    """Return the explorers whose tests run."""
    by_turns = turn(EXPLORERS, commit()[0], of=len(EXPLORERS))
    return {name for name in EXPLORERS if state(name) is State.CHANGED} | by_turns


def write(explorers: Sequence[str]) -> None:
    """Put down that the tests of these explorers passed."""
    passed = {name: digest(name) for name in explorers}
    FILE.write_text(json.dumps(_passed() | passed, indent=1, sort_keys=True) + "\n")


def digest(explorer: str) -> str:
    """Return the digest of what an explorer's tests rest on."""
    tests = [path for path in TESTS.glob("*.py") if _is_of(path, explorer)]
    files = {*(PAGES / explorer).rglob("*"), PAGES / f"{explorer}.md", *closure(tests)}
    files |= {path for pattern in SHARED for path in ROOT.glob(pattern)}
    whole = hashlib.sha256()
    for path in sorted(path for path in files if path.is_file() and path.suffix != ".pyc"):
        whole.update(f"\0{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return whole.hexdigest()[:16]


def _is_of(path: Path, explorer: str) -> bool:
    """Say whether a file is about the explorer, or helps the tests of all."""
    if path.stem.startswith("test_"):
        return explorer_of(path) == explorer
    return not any(other in path.stem for other in EXPLORERS if other != explorer)


def _passed() -> dict[str, str]:
    return dict(json.loads(FILE.read_text())) if FILE.is_file() else {}
