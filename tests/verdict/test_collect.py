"""What would not run here as under pytest is refused; a file is read as it is now."""

import signal
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from grader.course.course import CourseError
from grader.verdict.checks import MARKERS, Suite
from grader.verdict.collect import collect, fixture_options
from tests import ctrl_c
from tests.verdict.check_files import written

CHECK = '''
def test_it():
    """Holds."""
'''

REFUSED = {
    "its import stops at line 2 with ZeroDivisionError": "x = 1 / 0",
    "its import stops with SyntaxError: invalid syntax (test_it.py, line 2)": "x = = 1",
    "its import stops at line 2 with ModuleNotFoundError": "import no_such_module",
    "its import stops at line 3 with Skipped": "import pytest\npytest.skip('', allow_module_level=True)",
    "its import stops at line 2 with SystemExit": "raise SystemExit",
    "`pytestmark`: mark each check": "pytestmark = []",
    "`pytest_plugins`: import what": "pytest_plugins = ['x']",
    "`pytest_generate_tests`: use `pytest.mark.param": "def pytest_generate_tests(metafunc): ...",
    "it has `setup_module`: write a fixture": "def setup_module(): ...",
    "it has `teardown_function`": "def teardown_function(): ...",
    "TestIt looks like a class of tests": "class TestIt: ...",
    "Cases looks like a class": "import unittest\nclass Cases(unittest.TestCase): ...",
    "hidden has `__test__`": "def hidden(): ...\nhidden.__test__ = True",
    "test_a is async": "async def test_a(): ...",
    "test_a yields": "def test_a():\n    yield",
    "test_a is partial, not a function": "import functools\ntest_a = functools.partial(print)",
    "test_a uses hypothesis": "from hypothesis import given\n@given()\ndef test_a(): ...",
    "test_a has the mark skip": "import pytest\n@pytest.mark.skip\ndef test_a(): ...",
    "test_a has the mark xfail": "import pytest\n@pytest.mark.xfail\ndef test_a(): ...",
    "has the mark usefixtures": "import pytest\n@pytest.mark.usefixtures('x')\ndef test_a(): ...",
    "test_a takes `tmp_path`, which no fixture makes: take rng": "def test_a(tmp_path): ...",
    "test_a takes `request`": "def test_a(request): ...",
    "x takes `monkeypatch`": "@fixture\ndef x(monkeypatch): ...",
    "x takes `x`": "@fixture\ndef x(x): ...",
    "the fixtures x and y need each other": "@fixture\ndef x(y): ...\n@fixture\ndef y(x): ...",
    "the fixture x has `scope`": "@fixture(scope='module')\ndef x(): ...",
    "x has `params`: a fixture is made for each": "@fixture(params=[1])\ndef x(): ...",
    "x has `autouse`": "@fixture(autouse=True)\ndef x(): ...",
    "the fixture x is async": "@fixture\nasync def x(): ...",
    "two fixtures are called x": "@fixture(name='x')\ndef y(): ...\n@fixture\ndef x(): ...",
    "test_a has `indirect`": "@cases('a', [1], indirect=True)\ndef test_a(a): ...",
    "test_a names `b`": "@cases('b', [1])\ndef test_a(a=1): ...",
    "names `a`: name argum": "@cases('a', [1])\n@cases('a', [1])\ndef test_a(a): ...",
    "needs cases, and": "@cases('a', [])\ndef test_a(a): ...",
    "in each a value for a, b": "@cases('a, b', [(1,)])\ndef test_a(a, b): ...",
    "marks single cases": "@cases('a', [pytest.param(1, marks=points(2))])\ndef test_a(a): ...",
    "has `ids` that": "@cases('a', [1], ids=str)\ndef test_a(a): ...",
    "gives two cases one name: name each, `pytest.param": "@cases('a', [1, 1])\ndef test_a(a): ...",
    "has b'x' for a name": "@cases('a', [b'x'])\ndef test_a(a): ...",
    "has 'ä' for a name": "@cases('a', ['ä'])\ndef test_a(a): ...",
    "has <class 'int'> for a name": "@cases('a', [int])\ndef test_a(a): ...",
}
HEAD = "import pytest; from pytest import fixture; from grader import points; cases = pytest.mark.parametrize"


@pytest.mark.parametrize("said", REFUSED)
def test_what_would_not_run_as_under_pytest_is_refused(said: str, tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEAD}\n{REFUSED[said]}\n{CHECK}")
    modules = dict(sys.modules)
    with pytest.raises(CourseError) as refused:
        collect(path, ["rng", "parameters"], MARKERS)
    assert f"{tmp_path.name}/test_it.py: " in str(refused.value)
    assert said in str(refused.value)
    assert modules.get("test_it") is sys.modules.get("test_it")


def test_checks_without_a_rubric_or_none_at_all_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=r":\d+: test_a needs a docstring"):
        Suite(written(tmp_path, "def test_a(): ..."), {}, {})
    with pytest.raises(CourseError, match="holds no checks"):
        Suite(written(tmp_path, "def helper(): ..."), {}, {})


def test_pytest_still_keeps_what_a_fixture_was_told_where_it_is_looked_for() -> None:
    @pytest.fixture(scope="module", params=[1], autouse=True, name="named")
    def x() -> None: ...

    told = fixture_options(x)
    assert (told.scope, told.params, told.autouse) == ("module", (1,), True)
    assert (x.name, cast(Any, x).__wrapped__.__name__) == ("named", "x")
    told = fixture_options(pytest.fixture(lambda: None))
    assert (told.scope, told.params, told.autouse) == ("function", None, False)


def test_a_file_is_read_as_it_is_now_whatever_else_has_its_name(tmp_path: Path) -> None:
    for name, value in (("a", 1), ("b", 2), ("a", 3)):
        (tmp_path / name).mkdir(exist_ok=True)
        text = f'VALUE = {value}\ndef test_it():\n    """Says {value}."""\n'
        suite = Suite(written(tmp_path / name, text), {}, {})
        assert suite.checks[0].rubric == f"Says {value}."
    assert "test_it" not in sys.modules
    assert not list(tmp_path.rglob("*.pyc"))


def test_an_import_is_not_interrupted_halfway(tmp_path: Path) -> None:
    text = f"import signal\nsignal.raise_signal(signal.SIGINT)\ndone = True\n{CHECK}"
    path = written(tmp_path, text)
    modules = set(sys.modules)
    with ctrl_c.interrupts():
        with pytest.raises(KeyboardInterrupt) as interrupt:
            collect(path, [], [])
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    last = interrupt.traceback[-1]
    assert last.path != path  # it came when the file was done
    assert set(sys.modules) == modules
