"""Checks run here as they run under pytest, which is asked too."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from grader.verdict.checks import MARKERS
from grader.verdict.collect import collect
from tests.verdict.check_files import written

ALL_THAT_RUNS = '''
"""What checks use of pytest. `note` is a list that every part writes to."""
from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import pytest
from grader import claimed, gate, points


@dataclass
class Pair:
    _: KW_ONLY
    a: int = 1

@pytest.fixture
def first(note):
    note.append("first")
    return 1

@pytest.fixture
def second(first, note):
    note.append("second begins")
    yield first + 1
    note.append("second ends")

@pytest.fixture(name="third")
def made_under_another_name(second, note):
    try:
        yield second + 1
    finally:
        note.append("third ends")

@pytest.fixture
def note(note):
    note.append("note")
    return note

@pytest.fixture
def breaks(note, second):
    raise KeyError("while it is made")

@pytest.fixture
def breaks_at_its_end(note):
    yield
    raise KeyError("at its end")

@pytest.fixture
def sized(size, note):
    note.append(f"sized {size}")
    return size

@pytest.fixture
def size():
    return "the fixture's"

def helper(): ...

def test_in_order(third, first, note, left=3):
    """Right: each fixture is made once, dependencies first."""
    assert (first, third, left, Pair().a) == (1, 3, 3, 1)

@gate
def test_gate(second, note):
    """Wrong."""
    assert second == 3, "two is not three"

def test_not_called(breaks, note):
    """Wrong before it begins."""
    note.append("never")

def test_end(breaks_at_its_end, third):
    """Wrong at its end."""

def test_both(breaks_at_its_end):
    """Wrong twice: the first counts."""
    raise ValueError("first")

@claimed
@points(2)
@pytest.mark.parametrize("number", [1, 2.5, None, True, pytest.param("a", id="text"), "b", [3]])
def test_one(number, note):
    """Each is a case."""
    note.append(number)
    assert number

@pytest.mark.parametrize(("a", "b"), [(1, 2), pytest.param(3, 4, id="x")])
@pytest.mark.parametrize("c,", [(5,), (6,)], ids=["five", None])
def test_all(a, b, c, *, note):
    """Every combination."""
    note.append((a, b, c))

@pytest.mark.parametrize("size", [7])
def test_given(sized, size):
    """The value of a case stands before a fixture."""
    assert sized == size == 7

def test_size(sized):
    """Without a case it is the fixture's."""
    assert sized == "the fixture's"

def test_raises():
    """What pytest gives to call works."""
    with pytest.raises(ValueError, match="x"):
        raise ValueError("x")
    assert pytest.approx(0.3) == 0.1 + 0.2

def test_fails():
    """Wrong."""
    pytest.fail("said so")

def test_exits():
    """Wrong: nothing leaves a check but an interrupt."""
    raise SystemExit(0)
'''


def _under_pytest(path: Path) -> tuple[list[tuple[str, str]], list[object]]:
    note: list[object] = []
    found: dict[str, str] = {}

    class Plugin:
        @pytest.fixture
        def note(self) -> list[object]:
            return note

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            name = report.nodeid.split("::")[1]
            if found.get(name, "passed") == "passed":
                found[name] = report.outcome

    arguments = ["-c", "/dev/null", f"--rootdir={path.parent}", "--import-mode=importlib"]
    off = ["terminal", "cacheprovider", "capture", "faulthandler"]
    modules = set(sys.modules)
    pytest.main([*arguments, *(f"-pno:{name}" for name in off), str(path)], [Plugin()])
    for name in set(sys.modules) - modules:
        if name.endswith(path.stem):
            del sys.modules[name]
    return list(found.items()), note


def test_as_pytest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # plugins take seconds to load
    path = written(tmp_path, ALL_THAT_RUNS)
    note: list[object] = []
    file = collect(path, ["note"], MARKERS)
    ours = [
        (case.name, "failed" if file.run(case, {"note": lambda value_of: note}) else "passed")
        for case in file.cases
    ]
    outcomes, noted = _under_pytest(path)
    assert ours == outcomes
    assert note == noted
    assert Counter(outcome for _, outcome in ours) == {"passed": 14, "failed": 7}


def test_the_first_error_counts_and_is_shown_where_it_happened(tmp_path: Path) -> None:
    path = written(tmp_path, ALL_THAT_RUNS)
    file = collect(path, ["note"], MARKERS)
    note: list[object] = []
    seen: list[tuple[str, bool]] = []

    def show(error: BaseException) -> None:
        seen.append((str(error), error.__traceback__ is not None))

    (case,) = [case for case in file.cases if case.name == "test_both"]
    error = file.run(case, {"note": lambda value_of: note}, show)
    assert repr(error) == "ValueError('first')"
    assert error is not None and error.__traceback__ is None
    assert seen == [("first", True), ("'at its end'", True)]
