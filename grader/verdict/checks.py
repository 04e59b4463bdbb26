"""Checks are pytest tests. This runs the checks of one exercise, collected once, as often as asked."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar
from unittest import mock

import pytest
import torch
from _pytest.assertion.rewrite import AssertionRewritingHook
from _pytest.config import _prepareconfig
from _pytest.main import Session
from _pytest.runner import call_and_report

from grader.course.course import AuthorError
from grader.course.parameters import Values, render
from grader.inside.probe import Probe
from grader.verdict.compare import Comparison, Record, recording
from grader.verdict.interview import Evidence, Interview

_Check = TypeVar("_Check", bound=Callable[..., object])


def points(weight: float) -> Callable[[_Check], _Check]:
    """Give a check another weight than 1 in its exercise's points."""
    return pytest.mark.undertorch_points(weight)


MARKERS = (
    "undertorch_points(weight): a check's weight; 0 makes it a gate",
    "undertorch_claimed: a check of what was observed",
)

gate = pytest.mark.undertorch_points(0)
"""A check that a trivial answer may pass: worth nothing, and if it fails nothing else counts."""


claimed = pytest.mark.undertorch_claimed
"""A check of what instruments saw (ops, allocations, saved tensors) beside the student's code."""


@dataclass(frozen=True)
class Check:
    """One check: its name, its rubric line (the docstring's first) and its weight. 0 is a gate.

    `claimed` says that it rests on what was observed, not on values that prove themselves.
    """

    name: str
    rubric: str
    weight: float
    claimed: bool = False


@dataclass(frozen=True)
class CheckRun:
    """What one run of a check came to. `error` is None if it passed."""

    check: Check
    error: BaseException | None
    comparisons: tuple[Comparison, ...]


class Probed:
    """What a check receives for a probe's name: evidence, asked for when it is first looked at."""

    def __init__(self, probe: Probe, interview: Interview, request: pytest.FixtureRequest) -> None:
        self._probe = probe
        self._interview = interview
        self._request = request

    def ask(self, *args: Any, **inputs: Any) -> Evidence:
        """Run the probe on other inputs, given in order or by name."""
        return self._interview.ask(
            self._probe, {**dict(zip(self._probe.inputs, args, strict=False)), **inputs}
        )

    def __getattr__(self, name: str) -> Any:
        inputs = {name: self._request.getfixturevalue(name) for name in self._probe.inputs}
        return getattr(self.ask(**inputs), name)


def probe_fixtures(
    probes: dict[str, Probe], interview_of: Callable[[pytest.FixtureRequest], Interview]
) -> object:
    """Return a pytest plugin that has one fixture per probe."""

    def fixture_for(probe: Probe) -> Any:
        def provide(self: object, request: pytest.FixtureRequest) -> Probed:
            return Probed(probe, interview_of(request), request)

        return pytest.fixture(name=probe.name)(provide)

    members = {f"probe_{name}": fixture_for(probe) for name, probe in probes.items()}
    return type("ProbeFixtures", (), members)()


def generator_for(seed: int, scope: str) -> torch.Generator:
    """Return a generator for the inputs of `scope`, an exercise: the same for the same seed."""
    digest = hashlib.sha256(f"{seed}/{scope}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


OnError = Callable[["pytest.ExceptionInfo[BaseException]"], None]
"""Is shown the error of a check, with its traceback."""


class Suite:
    """The checks of one `test_<exercise>.py`, for the values of the exercise's parameters.

    Raises `AuthorError` if the file is missing, cannot be read, or a check is not what one must be.
    """

    def __init__(self, path: Path, probes: dict[str, Probe], values: Values) -> None:
        self._values = values
        self._interview: Interview | None = None
        self._seed = 0
        self._errors: list[BaseException] = []
        self._on_error: OnError | None = None
        self._exercise = path.stem.removeprefix("test_")
        self._unread: list[str] = []
        if not path.is_file():
            raise AuthorError(f"{path} is missing: it holds the checks of {self._exercise}.")
        self._session = _collect(path, [self, probe_fixtures(probes, self._current)])
        if self._unread:
            raise AuthorError(f"{path} cannot be read: {self._unread[0]}")
        self.checks = tuple(_describe(item, values) for item in self._session.items)
        if not any(check.weight for check in self.checks):
            raise AuthorError(
                f"{path} holds no check that gives points: write a `test_…` that is no @gate."
            )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep why a file could not be read: pytest would go on without its checks."""
        if report.failed:
            lines = [line for line in str(report.longrepr).splitlines() if line.strip()]
            said = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
            self._unread.append(" ".join(said[-1:] or lines[-1:]))

    @pytest.fixture
    def rng(self) -> torch.Generator:
        """A generator for this exercise's inputs, from the grading run's seed."""
        return generator_for(self._seed, self._exercise)

    @pytest.fixture
    def parameters(self) -> dict[str, Any]:
        """The values of the exercise's parameters, by name."""
        return dict(self._values)

    def run(
        self,
        interview: Interview,
        seed: int,
        *,
        stop: Callable[[list[CheckRun]], bool] = lambda runs: False,
        on_error: OnError | None = None,
    ) -> list[CheckRun]:
        """Run the checks against what `interview` can tell, in the file's order.

        `stop` looks at the runs so far, after each, and says whether they are enough. `on_error` is
        given each error with its traceback while the check's fixtures still live: a debugger.
        """
        self._interview, self._seed, self._on_error = interview, seed, on_error
        runs: list[CheckRun] = []
        threads = torch.get_num_threads()
        # What checks expect must not depend on this machine's width; and on tensors this small threads
        # only wait for each other, 20 ms a call on a busy machine.
        torch.set_num_threads(1)
        try:
            for check, item in zip(self.checks, self._session.items, strict=True):
                record = Record()
                token = recording.set(record)
                try:
                    error = self._run(item)
                finally:
                    recording.reset(token)
                runs.append(CheckRun(check, error, tuple(record.comparisons)))
                if stop(runs):
                    break
        finally:
            torch.set_num_threads(threads)
            self._interview = self._on_error = None
        return runs

    def _run(self, item: pytest.Item) -> BaseException | None:
        """Run one collected test again, as pytest would, and return what it raised."""
        item._initrequest()  # type: ignore[attr-defined]  # as plugins that rerun tests do
        self._errors.clear()
        setup = call_and_report(item, "setup", log=False)
        if setup.passed:
            call_and_report(item, "call", log=False)
        call_and_report(item, "teardown", log=False, nextitem=None)
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            sys.__dict__.pop(name, None)  # where pytest leaves the error for a debugger
        return self._errors[0] if self._errors else None

    # One plugin for all runs: pytest remembers every plugin that was ever registered.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport:
        """In place of pytest's own, which takes 6 ms to print a traceback nobody reads."""
        if call.excinfo is not None:
            if self._on_error is not None:
                self._on_error(call.excinfo)
            # a traceback would hold every value of the check, and all that led to it
            self._errors.append(call.excinfo.value.with_traceback(None))
        outcome: Literal["passed", "failed"] = "failed" if call.excinfo else "passed"
        assert call.when != "collect"
        return pytest.TestReport(
            item.nodeid, item.location, {}, outcome, longrepr=None, when=call.when
        )

    def _current(self, request: pytest.FixtureRequest) -> Interview:
        assert self._interview is not None, "a check ran outside Suite.run"
        return self._interview


def _collect(path: Path, plugins: list[object]) -> Session:
    arguments = [
        # no configuration file, conftest.py or plugin of the host may change how checks run
        "-c", os.devnull, "--rootdir", str(path.parent), "--import-mode=importlib", "--noconftest",
        "-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:capture", "-p", "no:logging",
        "-p", "no:junitxml", "-p", "no:doctest", "-p", "no:faulthandler", "-p", "no:warnings",
        "-p", "no:unraisableexception", "-p", "no:threadexception",
        str(path),
    ]  # fmt: skip
    finders = list(sys.meta_path)
    silent = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "PYTEST_PLUGINS": ""}
    with mock.patch.dict(os.environ, silent):
        config = _prepareconfig(arguments, plugins)
        session = Session.from_config(config)
        for mark in MARKERS:
            config.addinivalue_line("markers", mark)
        config.hook.pytest_sessionstart(session=session)
        session.perform_collect()
    # pytest takes a module that has the name: another course's, or an older text
    for name in [n for n, m in sys.modules.items() if getattr(m, "__file__", None) == str(path)]:
        del sys.modules[name]
    # it leaves a finder that holds the session, and all that its fixtures made, for ever
    sys.meta_path[:] = [
        finder
        for finder in sys.meta_path
        if finder in finders or not isinstance(finder, AssertionRewritingHook)
    ]
    return session


def _describe(item: pytest.Item, values: Values) -> Check:
    function = item.function  # type: ignore[attr-defined]
    mark = item.get_closest_marker("undertorch_points")
    weight = float(mark.args[0]) if mark else 1.0
    rubric = (function.__doc__ or "").strip().split("\n")[0]
    if not rubric:
        line = function.__code__.co_firstlineno
        raise AuthorError(
            f"{item.path}:{line}: {item.name} needs a docstring: a student reads it as what is checked."
        )
    claims = item.get_closest_marker("undertorch_claimed") is not None
    try:
        rubric = render(rubric, values)
    except ValueError as error:
        raise AuthorError(f"{item.path}: the docstring of {item.name}: {error}") from None
    return Check(item.name, rubric, weight, claims)
