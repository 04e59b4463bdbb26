"""Runs a chapter's checks on any notebook from the shell, with pytest as everybody knows it:

    pytest grader/ch01_formats --submission my/ch01_formats/formats.ipynb

The code runs in a fork, without a box: it is meant for your own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.box.fork import Fork
from grader.course.course import Course, Exercise
from grader.course.rules import describe_rule
from grader.inside.probe import Probe, load_probes
from grader.inside.process.budget import Budget, changed
from grader.submission.program import judged_text
from grader.submission.rebuild import Rebuilt, Unreadable, read_notebook, rebuild
from grader.submission.scan import scan
from grader.verdict.checks import MARKERS, Probed, generator_for
from grader.verdict.interview import Interview
from grader.verdict.known import PRACTICE_SEED


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--submission` and `--seed`."""
    group = parser.getgroup("undertorch")
    group.addoption("--submission", type=Path, help="notebook whose answers the checks judge")
    group.addoption("--seed", type=int, default=PRACTICE_SEED, help="seed of the checks' inputs")


def pytest_configure(config: pytest.Config) -> None:
    """Say what the mark means, and with a submission give the checks their fixtures."""
    for mark in MARKERS.values():
        config.addinivalue_line("markers", mark)
    if config.getoption("submission", None) is not None:
        config.pluginmanager.register(_Interviews(config), "undertorch-interviews")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse to run checks without a notebook, in one line instead of one error per check."""
    checks = [item for item in items if _graders(item) is not None]
    if checks and config.getoption("submission", None) is None:
        folder = _graders(checks[0])
        raise pytest.UsageError(
            f"Checks judge a notebook. Say which: pytest {folder} --submission NOTEBOOK.ipynb"
        )


def _graders(item: pytest.Item) -> Path | None:
    """Return the chapter's folder of a check; None for any other test."""
    folder = item.path.parent
    is_check = (folder / "probes").is_dir() and folder.parent.name == "grader"
    return folder if is_check else None


class _Interviews:
    """Gives each exercise's checks an interview with that exercise's program."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._open: dict[Path, Interview] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        """Register a chapter's probes as fixtures when its first check file is collected."""
        folder = collector.path.parent
        name = f"undertorch-probes-{folder}"
        plugins = self._config.pluginmanager
        if not isinstance(collector, pytest.Module) or plugins.has_plugin(name):
            return
        probes = folder / "probes"
        if probes.is_dir():
            plugin = _probe_fixtures(load_probes(probes), self._interview)
            plugins.register(plugin, name)

    @pytest.fixture
    def rng(self, request: pytest.FixtureRequest) -> torch.Generator:
        """A generator for an exercise's inputs, the same in each of its checks."""
        exercise = request.path.stem.removeprefix("test_")
        return generator_for(self._config.getoption("seed"), exercise)

    @pytest.fixture
    def parameters(self, request: pytest.FixtureRequest) -> dict[str, Any]:
        """The values of an exercise's parameters, by name: those of the course around the checks."""
        return dict(_exercise(request.path).values)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Fail a check during which something off limits was called."""
        yield
        interview = self._open.get(item.path)
        for rule in interview.tripped if interview else ():
            pytest.fail(f"off limits: {describe_rule(rule)}, while it ran", pytrace=False)

    def pytest_unconfigure(self) -> None:
        """End every fork."""
        for interview in self._open.values():
            interview.close()

    def _interview(self, request: pytest.FixtureRequest) -> Interview:
        path = request.path
        if path not in self._open:
            exercise = path.stem.removeprefix("test_")
            chapter = Course(path.parents[2]).chapter(path.parent.name)
            try:
                rebuilt = _rebuilt(
                    self._config.getoption("submission"), path.parents[2], chapter.id
                )
            except Unreadable as error:
                pytest.exit(f"--submission: {error}", returncode=pytest.ExitCode.USAGE_ERROR)
            card = _exercise(path)
            off_limits = card.off_limits
            broken = scan(judged_text(rebuilt.programs[exercise]), off_limits)
            for rule, line in broken:
                pytest.fail(f"off limits: {describe_rule(rule)}, in `{line}`", pytrace=False)
            seed = self._config.getoption("seed")
            budget = changed(Budget(), card.budget)
            interview = Interview(Fork(load_probes(chapter.probes), budget), off_limits, seed)
            interview.load(rebuilt.programs[exercise])
            self._open[path] = interview
        return self._open[path]


def _probe_fixtures(
    probes: dict[str, Probe], interview_of: Callable[[pytest.FixtureRequest], Interview]
) -> object:
    """Return a pytest plugin that has one fixture per probe."""

    def fixture_for(probe: Probe) -> Any:
        def provide(self: object, request: pytest.FixtureRequest) -> Probed:
            return Probed(probe, interview_of(request).ask, request.getfixturevalue)

        return pytest.fixture(name=probe.name)(provide)

    members = {f"probe_{name}": fixture_for(probe) for name, probe in probes.items()}
    return type("ProbeFixtures", (), members)()


def _exercise(checks: Path) -> Exercise:
    chapter = Course(checks.parents[2]).chapter(checks.parent.name)
    return chapter.exercise(checks.stem.removeprefix("test_"))


@cache
def _rebuilt(submission: Path, root: Path, chapter: str) -> Rebuilt:
    return rebuild(Course(root).chapter(chapter), read_notebook(submission))
