"""Costly tests run for what has changed since they passed, and for some more by turns.

Six kinds of tests are costly: those of explorers, of pages in a browser, of the short programs on pages, of
whole notebooks, of whole commands on whole courses, and of chapters, what each says of PyTorch and how its
answers read. For each kind a record says what passed: a digest for each explorer, page, source of programs,
notebook, file of tests or chapter, of what its tests rest on. Where that is all code, what proofs hear
(`HEARD`, and the graders of chapters) is left out: proofs are made anew when it changes. The package's code counts by
its syntax tree, so that remarks and layout change nothing. Trees differ between versions of Python: what passed on
another has its turns alone. With `--prove-all`, as in `make prove`, all costly tests run and no others, and the
records are written. Who names tests on the command line gets them.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from grader.course.course import Chapter, Course
from grader.course.imports import closure
from grader.proving.digest import judges_digest, judging_files, notebook_digest, python_version
from grader.proving.ledger import turn
from tests import ROOT
from tests.proving.commit import HOLDS, commit

TESTS = ROOT / "tests"
PACKAGE = ROOT / "grader"
PAGE_FILES = {
    TESTS / f"{name}.py"
    for name in ("building/test_programs", "site/test_pages", "site/test_site", "site/test_views")
}
"""Which files of tests choose among pages themselves, or are about all pages at once."""

RECORDS = TESTS / "passed"
SECONDS = "seconds"
"""The record of how long the tests of each took when all ran, by kind and name: what has its turn takes
about as long each time."""

OPTION = "--prove-all"

EXPLORERS = sorted(
    page.stem for page in (ROOT / "site/explorers").glob("*.md") if page.with_suffix("").is_dir()
)
EXPLORER_TESTS = TESTS / "explorers"
FAMILY = "family"
"""What the tests of several explorers at once are recorded as."""

CHAPTERS = [chapter.id for chapter in Course(ROOT).chapters()]
NOTEBOOK_TESTS = TESTS / "live" / "test_run_all.py"
PAGE_TESTS = TESTS / "site" / "test_pages.py"

CHAPTER_TESTS = [
    TESTS / name
    for name in ("course/test_answers.py", "proving/test_known.py", "submission/test_evasion.py")
]
"""Which files of tests ask something of each chapter, beside those in its own folder."""

JOURNEYS = (
    "attacks/test_*.py",
    "box/test_start.py",
    "instructor/test_*.py",
    "live/test_*.py",
    "nbgrader/test_box_lost.py",
    "nbgrader/test_reading.py",
    "scale/test_*.py",
    "shapes/test_*.py",
    "student/test_terminal.py",
    "student/test_update.py",
)
"""Which files of tests go a long way for each fact: a class that is graded, a kernel, a browser in Lab."""

SHARED = (
    "constraints.txt",
    "grader/feedback/theme.css",
    "mkdocs.yml",
    "site/*.py",
    "site/assets/*.css",
    "site/assets/*.js",
    "site/explorers/*.css",
    "site/explorers/*.js",
    "site/explorers/index.md",
    "site/explorers/inline.py",
    "site/templates/*",
    "tests/browser.py",
    "tests/conftest.py",
    "tests/site/axe/*",
    "tests/site/test_pages.py",
)
"""What the tests of each explorer rest on, beside its own files and what they import."""

SHOW_VIEWS = ("site/explorers/**/*", "site/index.md", "site/questions/*.py", "solutions/*/*.pct.py")
"""What the tests of all explorers rest on besides: where their views are written."""

PROGRAMS = ("site/myths/*.py", "site/questions/*.py")
"""Where short programs are, with the pages that are built of them."""

COURSE_FILES = ("constraints.txt", "pyproject.toml", "nbgrader_config.py", "mkdocs.yml")
"""What whole commands read beside the code."""

CHOOSERS = {TESTS / name for name in ("account.py", "passed.py", "proving/commit.py")}
"""Which tests run, and what is told of them: no test rests on that."""

HEARD = ("course", "evidence", "proving", "submission", "verdict")
"""Rooms where a defect is a wrong verdict, which a proof hears. How code is run, watched, interrupted and ended
(`box`, `inside`) is judged by as well, and no proof hears that: a change there is one for all journeys."""


AUTHORS = ROOT / "grader" / "proving"
"""The room of authors' commands alone: no class is graded by it, and no student meets it."""


def chosen(kind: str, digests: Mapping[str, str], of: int) -> set[str]:
    """Return what changed since it passed, and every `of`-th by turns."""
    passed, count = _read(kind), commit()[0]
    changed = {name for name in digests if not _holds(passed.get(name, ""), digests[name])}
    return changed | turn(digests, count, of, seconds(kind))


def _holds(passed: str, now: str) -> bool:
    """Say whether what passed is what is here, or was on another Python: then nobody can tell."""
    digest, _, python = passed.partition(" on ")
    return digest == now or (python != "" and python != python_version())


def seconds(kind: str) -> dict[str, float]:
    """Return how long the tests of each of a kind took, where that is known."""
    return dict(_read(SECONDS).get(kind, {}))


def _chosen_of(kind: str) -> set[str]:
    digests, of = KINDS[kind]
    return chosen(kind, digests(), of)


def write(kind: str, digests: Mapping[str, str]) -> None:
    """Put down what passed of a kind, here and now."""
    _write(kind, {name: _stamped(digest) for name, digest in digests.items()})


def _stamped(digest: str) -> str:
    return f"{digest} on {python_version()}"


def _write(name: str, record: Mapping[str, Any]) -> None:
    RECORDS.mkdir(exist_ok=True)
    text = json.dumps(dict(record), indent=1, sort_keys=True)
    (RECORDS / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


def _read(name: str) -> dict[str, Any]:
    file = RECORDS / f"{name}.json"
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def all_run(config: pytest.Config) -> bool:
    """Say whether tests run whatever changed: because all are to be proved, or because they are named."""
    return bool(config.getoption(OPTION)) or config.args != config.getini("testpaths")


def left_out(items: Iterable[pytest.Item], config: pytest.Config) -> list[pytest.Item]:
    """Return the tests that need not run, or with `--prove-all` those that are not costly."""
    if config.getoption(OPTION):
        return [i for i in items if i.path not in PAGE_FILES and not costly(i.path, i.name)]
    if all_run(config):
        return []
    due = {(kind, name) for kind in KINDS for name in _chosen_of(kind)}
    return [item for item in items if costly(item.path, item.name) not in {None, *due}]


def costly(file: Path, test: str) -> tuple[str, str] | None:
    """Return a test's kind and what it is of, where it is costly. What looks at pages chooses among them itself."""
    of = re.search(r"\[(\w+)\]", test)
    named = of[1] if of else ""
    if explorer := explorer_of(file):
        return "explorers", explorer
    if file == PAGE_TESTS:
        return ("explorers", named) if named in EXPLORERS else None
    if file == NOTEBOOK_TESTS:
        return ("notebooks", named) if named in CHAPTERS else None
    if file in CHAPTER_TESTS:
        return ("chapters", named) if named in CHAPTERS else None
    if (folder := file.relative_to(TESTS).parts[0]) in CHAPTERS:
        return "chapters", folder
    return ("journeys", _name_of(file)) if file in _journeys() else None


class Record:
    """Notes which costly tests pass, in the process that started all, and puts it down at the end."""

    def __init__(self) -> None:
        self._good: dict[tuple[str, str], bool] = {}
        self._seconds: Counter[tuple[str, str]] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of one test."""
        if which := costly(ROOT / report.location[0], report.nodeid):
            self._good[which] = self._good.get(which, True) and not report.failed
            self._seconds[which] += report.duration

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the records, if whole files ran. A session that was stopped has run parts of some."""
        config = session.config
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        ended = ended and not session.shouldfail  # by `-x`
        if ended and not config.option.keyword and not any("::" in arg for arg in config.args):
            self.write()

    def write(self) -> None:
        """Put down each that passed, and how long it took. What did not run stays as it was."""
        all_seconds = {}
        for kind, (digests, _) in KINDS.items():
            now, kept, took = digests(), _read(kind), seconds(kind)
            for (of, name), good in self._good.items():
                if of == kind:
                    kept[name] = _stamped(now[name]) if good else ""
                    took[name] = round(self._seconds[of, name])
            _write(kind, {name: kept[name] for name in now if kept.get(name)})
            all_seconds[kind] = {name: took[name] for name in sorted(now) if name in took}
        _write(SECONDS, all_seconds)


# ── Explorers ────────────────────────────────────────────────────────────────


def explorer_of(test: Path) -> str | None:
    """Return the explorer that a file of tests is about, `FAMILY` for all of them; None if about none."""
    name = test.stem.removeprefix("test_").removesuffix("_page")
    if test.parent != EXPLORER_TESTS or not test.stem.startswith("test_"):
        return None
    return name if name in EXPLORERS else FAMILY


def explorers_due(config: pytest.Config) -> set[str]:
    """Return the explorers whose tests run."""
    return set(EXPLORERS) if all_run(config) else _chosen_of("explorers")


def explorer_digests() -> dict[str, str]:
    """Return the digest of what the tests of each explorer rest on, and those of all of them."""
    return {name: _explorer_digest(name) for name in EXPLORERS} | {FAMILY: _family_digest()}


def _explorer_digest(explorer: str) -> str:
    tests = [path for path in EXPLORER_TESTS.glob("*.py") if _is_of(path, explorer)]
    pages = ROOT / "site" / "explorers"
    return _digest({*(pages / explorer).rglob("*"), pages / f"{explorer}.md", *_shared_with(tests)})


def _family_digest() -> str:
    """Return the digest of what those tests rest on that are about several explorers, or their views."""
    found = {path for pattern in SHOW_VIEWS for path in ROOT.glob(pattern)}
    return _digest({*found, *_shared_with(EXPLORER_TESTS.glob("*.py"))})


def _shared_with(tests: Iterable[Path]) -> set[Path]:
    return {*closure(tests), *(path for pattern in SHARED for path in ROOT.glob(pattern))}


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
    code = {*closure([*student, NOTEBOOK_TESTS])} - _heard()
    shared = _digest(code | {ROOT / "constraints.txt"})
    return {
        chapter.id: _hashed(notebook_digest(chapter), _digest({chapter.released}), shared)
        for chapter in Course(ROOT).chapters()
    }


# ── Chapters ─────────────────────────────────────────────────────────────────


@cache
def chapter_digests() -> dict[str, str]:
    """Return the digest of what the tests of each chapter rest on."""
    return {
        chapter.id: _hashed(_chapter_digest(chapter), judges_digest())
        for chapter in Course(ROOT).chapters()
    }


def _chapter_digest(chapter: Chapter) -> str:
    own = [TESTS / chapter.id, chapter.graders, chapter.reference.parent, chapter.released.parent]
    files = {path for folder in own for path in folder.rglob("*")}
    tests = _with_imported([*(TESTS / chapter.id).rglob("*.py"), *CHAPTER_TESTS]) - CHOOSERS
    return _digest({*files, *closure(tests), ROOT / "constraints.txt"})


# ── Whole commands on whole courses ──────────────────────────────────────────


@cache
def _journeys() -> frozenset[Path]:
    return frozenset(
        path for pattern in JOURNEYS for path in TESTS.glob(pattern) if path != NOTEBOOK_TESTS
    )


def journey_digests() -> dict[str, str]:
    """Return the digest of what each such file of tests rests on: all code but that of chapters, what
    proofs hear and, where the tests do not import it, `AUTHORS`.

    No proof hears what an attack would do: those rest on what proofs hear, too, and on the graders of
    the chapters that they name.
    """
    code = {path for path in (ROOT / "grader").rglob("*") if not _of_a_chapter(path)}
    code -= set(AUTHORS.rglob("*"))
    code |= {ROOT / name for name in COURSE_FILES}
    whole, unheard = _digest(code), _digest(code - _heard())
    digests = {}
    for path in _journeys():
        own, chapters = _journey_digest(path)
        attack = path.parent.name == "attacks"
        digests[_name_of(path)] = (
            _hashed(whole, own, *chapters) if attack else _hashed(unheard, own)
        )
    return digests


@cache
def _heard() -> frozenset[Path]:
    """Return the files of code that proofs hear."""
    rooms = [ROOT / "grader" / room for room in HEARD]
    return frozenset(
        path for path in judging_files() if any(room in path.parents for room in rooms)
    )


def _journey_digest(test: Path) -> tuple[str, list[str]]:
    """Return the digest of a file of tests, its helpers and notebooks; and those of chapters' graders."""
    beside = {path for path in test.parent.rglob("*") if not path.name.startswith("test_")}
    files = (beside | _with_imported([test, TESTS / "conftest.py", *beside])) - CHOOSERS
    text = "".join(path.read_text(encoding="utf-8") for path in files if path.suffix == ".py")
    named = [chapter for chapter in Course(ROOT).chapters() if chapter.id in text]
    proving = closure(AUTHORS / f"{name}.py" for name in set(_PROVING.findall(text)))
    files |= {path for path in proving if AUTHORS in path.parents} - _heard()
    own = _hashed(_digest(files), _digest({one.released for one in named}))
    return own, [notebook_digest(one) for one in named]


_IMPORT = re.compile(r"^\s*from (tests(?:\.\w+)*) import (.*)$", re.MULTILINE)
_PROVING = re.compile(r"^\s*from grader\.proving\.(\w+) import", re.MULTILINE)
"""As text: an attack's file is a notebook's cells, and need not be Python."""


def _with_imported(files: Iterable[Path]) -> set[Path]:
    """Return the Python files among these, with all that they import of the tests, and so on."""
    found: set[Path] = set()
    pending = [file for file in files if file.suffix == ".py"]
    while pending:
        path = pending.pop()
        if path not in found:
            found.add(path)
            for module, names in _IMPORT.findall(path.read_text(encoding="utf-8")):
                place = ROOT.joinpath(*module.split("."))
                modules = [place, *(place / name for name in re.findall(r"\w+", names))]
                named = [*(one.with_suffix(".py") for one in modules), place / "__init__.py"]
                pending += [file for file in named if file.is_file()]
    return found


def _of_a_chapter(path: Path) -> bool:
    return bool(re.match(r"ch\d\d_", path.relative_to(ROOT / "grader").parts[0]))


def _name_of(test: Path) -> str:
    return test.relative_to(TESTS).as_posix()


# ── Pages, as they are built ─────────────────────────────────────────────────


def pages_due(built: Path, config: pytest.Config) -> list[str]:
    """Return the pages to be looked at: where nothing changed, a tenth of them has its turn."""
    digests = page_digests(built)
    return sorted(digests if all_run(config) else chosen("pages", digests, of=HOLDS))


def page_digests(built: Path) -> dict[str, str]:
    """Return the digest of each page of a built site, and of what any of them may load or show.

    But for the words of all pages, which are loaded for a search: else one word is a change for all.
    """
    pages = {path.relative_to(built).as_posix(): path for path in built.rglob("*.html")}
    loaded = [path for path in built.rglob("*") if path.suffix in {".css", ".js", ".svg", ".woff2"}]
    loaded = [path for path in loaded if path.stem != "search_index"]
    shared = _hashed(
        _digest(set(loaded), built), _digest({PAGE_TESTS, *PAGE_TESTS.parent.rglob("axe.min.js")})
    )
    return {name: _hashed(shared, _digest({path}, built)) for name, path in pages.items()}


# ── The short programs of pages ──────────────────────────────────────────────


def programs_due(config: pytest.Config) -> set[str]:
    """Return the sources whose programs run: where nothing changed, a tenth of them."""
    digests = program_digests()
    return set(digests) if all_run(config) else chosen("programs", digests, of=HOLDS)


def program_digests() -> dict[str, str]:
    """Return the digest of each source of short programs and of the pages that show what they print."""
    shared = _digest({ROOT / "constraints.txt", ROOT / "grader/building/programs.py"})
    return {
        path.relative_to(ROOT).as_posix(): _hashed(shared, _digest({path, *_shown(path)}))
        for pattern in PROGRAMS
        for path in ROOT.glob(pattern)
    }


def _shown(source: Path) -> set[Path]:
    """Return the pages of a source: one in its name, as myths have, or one for each cell."""
    cells = re.findall(r"^# %% (\S+)", source.read_text(encoding="utf-8"), re.MULTILINE)
    return {source.with_name(f"{name}.md") for name in (source.stem, *cells)}


def _digest(files: Set[Path], root: Path = ROOT) -> str:
    """Return the digest of files, by name and content, the package's code by its syntax tree."""
    whole = hashlib.sha256()
    for path in sorted(path for path in files if path.is_file() and path.suffix != ".pyc"):
        content = path.read_bytes()
        if path.suffix == ".py" and PACKAGE in path.parents:
            content = _tree(content)
        whole.update(f"\0{path.relative_to(root)}\0".encode() + content)
    return whole.hexdigest()[:16]


@cache
def _tree(source: bytes) -> bytes:
    return hashlib.sha256(ast.dump(ast.parse(source)).encode()).digest()


def _hashed(*digests: str) -> str:
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:16]


KINDS: Mapping[str, tuple[Callable[[], dict[str, str]], int]] = {
    "explorers": (explorer_digests, len(EXPLORERS) + 1),
    "notebooks": (notebook_digests, len(CHAPTERS)),
    "journeys": (journey_digests, HOLDS),
    "chapters": (chapter_digests, len(CHAPTERS)),
}
"""Of each kind of which single tests are left out: the digests, and every which one has its turn."""
