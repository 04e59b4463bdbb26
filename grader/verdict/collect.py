"""Reads the checks of a file, once, and refuses what would not run here as it runs under pytest."""

from __future__ import annotations

import inspect
import sys
import traceback
import types
import unittest
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from grader.inside import interrupts
from grader.verdict.cases import MalformedChecks, cases_of
from grader.verdict.runner import Case, CheckFile, Fixture

_FIXTURE: Any = type(pytest.fixture(lambda: None))

_INSTEAD = {
    "pytestmark": "mark each check",
    "pytest_plugins": "import what the checks need",
    "pytest_generate_tests": "use `pytest.mark.parametrize`",
}
"""Names of a module that pytest obeys, and what to do instead."""

_XUNIT = ("setup_", "teardown_", "setUp", "tearDown")


def collect(path: Path, outside: Collection[str], marks: Collection[str]) -> CheckFile:
    """Return the checks of a file that may use the fixtures `outside` and, on checks, `marks`.

    Raises `MalformedChecks`, with what to do instead, for what pytest would run and this does not.
    """
    try:
        names = _import(path)
        _refuse_others(names)
        fixtures = _fixtures(names)
        cases = tuple(
            case
            for name, value in names.items()
            if name.startswith("test") and callable(value) and not isinstance(value, _FIXTURE)
            for case in _cases(name, value, marks)
        )
        everything: list[Fixture | Case] = [*fixtures.values(), *cases]
        for one in everything:
            _refuse_unknown(one, fixtures, outside)
    except MalformedChecks as problem:
        raise MalformedChecks(f"{path.parent.name}/{path.name}: {problem}.") from problem.__cause__
    return CheckFile(cases, fixtures)


def _import(path: Path) -> dict[str, Any]:
    """Run a file's text, as it is now, and return its names. No module of it stays."""
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    other = sys.modules.get(path.stem)
    with interrupts.held():  # half an import stays half for the process's life
        sys.modules[path.stem] = module  # dataclasses look there for their annotations
        try:
            # asserts and docstrings count, whatever Python was told; nor is a stale .pyc wanted
            code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True, optimize=0)
            exec(code, vars(module))
        except (Exception, SystemExit, pytest.skip.Exception, pytest.fail.Exception) as error:
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == str(path)]
            where = f" at line {lines[-1]}" if lines else ""
            raise MalformedChecks(
                f"its import stops{where} with {type(error).__name__}: {error}"
            ) from error
        finally:
            del sys.modules[path.stem]
            if other is not None:
                sys.modules[path.stem] = other
    return vars(module)


def _fixtures(names: Mapping[str, Any]) -> dict[str, Fixture]:
    found: dict[str, Fixture] = {}
    for value in names.values():
        if not isinstance(value, _FIXTURE):
            continue
        name, make, options = value.name, value.__wrapped__, fixture_options(value)
        told = {
            "scope": options.scope != "function",
            "params": options.params is not None,
            "autouse": options.autouse,
        }
        if any(told.values()):
            what = next(option for option, was in told.items() if was)
            raise MalformedChecks(
                f"the fixture {name} has `{what}`: a fixture is made for each check that names it, "
                "so leave that out; for cases use `pytest.mark.parametrize`"
            )
        if name in found and found[name].make is not make:
            raise MalformedChecks(f"two fixtures are called {name}: rename one")
        _refuse_async(f"the fixture {name}", make)
        found[name] = Fixture(name, make, _arguments(make))
    return found


def fixture_options(fixture: Any) -> Any:
    """Return what `@pytest.fixture` was told: scope, params, autouse.

    pytest has no public way to ask. This line alone knows where it keeps that.
    """
    return fixture._fixture_function_marker


def _cases(name: str, value: Any, marks: Collection[str]) -> list[Case]:
    if isinstance(value, type) or not inspect.isfunction(value):
        raise MalformedChecks(f"{name} is {type(value).__name__}, not a function: write a function")
    _refuse_async(name, value)
    if inspect.isgeneratorfunction(value):
        raise MalformedChecks(f"{name} yields: a check returns nothing, so take that out")
    if hasattr(value, "is_hypothesis_test"):
        raise MalformedChecks(
            f"{name} uses hypothesis, whose cases no seed repeats: draw from `rng`"
        )
    for mark in getattr(value, "pytestmark", ()):
        if mark.name not in {*marks, "parametrize"}:
            raise MalformedChecks(
                f"{name} has the mark {mark.name}: take it off; a check has gate, points, claimed "
                "and `pytest.mark.parametrize`"
            )
    needs = _arguments(value)
    return [Case(one, value, needs, given) for one, given in cases_of(name, value, needs)]


def _refuse_others(names: Mapping[str, Any]) -> None:
    """Refuse what else pytest would see in a module."""
    for name, value in names.items():
        if name in _INSTEAD:
            raise MalformedChecks(f"it sets `{name}`: {_INSTEAD[name]} instead")
        if name.startswith(_XUNIT) and callable(value):
            raise MalformedChecks(
                f"it has `{name}`: write a fixture, and name it where it is needed"
            )
        if isinstance(value, type) and (
            name.startswith("Test") or issubclass(value, unittest.TestCase)
        ):
            raise MalformedChecks(
                f"{name} looks like a class of tests: write functions, or rename it"
            )
        if inspect.isfunction(value) and "__test__" in vars(value):
            raise MalformedChecks(f"{name} has `__test__`: call checks test_... and nothing else")


def _refuse_async(what: str, function: Callable[..., object]) -> None:
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise MalformedChecks(f"{what} is async: write `def`, and `asyncio.run` in it")


def _refuse_unknown(
    one: Fixture | Case, fixtures: Mapping[str, Fixture], outside: Collection[str]
) -> None:
    """Refuse a fixture that nobody makes, and fixtures that need each other in a circle."""
    pending: list[tuple[Fixture | Case, str, tuple[str, ...]]]
    pending = [(one, need, (one.name,)) for need in one.needs]
    while pending:
        asker, need, chain = pending.pop()
        given = isinstance(asker, Case) and need in asker.given
        fixture = None if need == asker.name else fixtures.get(need)
        if fixture is None and need not in outside and not given:
            raise MalformedChecks(
                f"{asker.name} takes `{need}`, which no fixture makes: take {', '.join(outside)} or "
                "a fixture of the file"
            )
        if fixture is not None and need in chain:
            raise MalformedChecks(
                f"the fixtures {' and '.join(chain)} need each other: break the circle"
            )
        if fixture is not None and not given:
            pending += [(fixture, other, (*chain, need)) for other in fixture.needs]


def _arguments(function: Callable[..., object]) -> tuple[str, ...]:
    """Return the names that a function has to be given, in order: what has a default keeps it."""
    named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return tuple(
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in named and parameter.default is parameter.empty
    )
