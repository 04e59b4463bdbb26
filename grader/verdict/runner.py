"""Runs one check: the part of pytest that checks use, and nothing that one run leaves to the next.

All that a run makes is kept in its call, so however it ends, the next one begins with nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from grader.verdict.cases import Given

ValueOf = Callable[[str], Any]
"""Returns the value that a fixture has in this run of a check, by its name."""

Outside = Mapping[str, Callable[[ValueOf], Any]]
"""What a check may ask for beside its file's own fixtures: by name, how it is made."""

AtEnd = Callable[[Callable[[], object]], object]
"""Takes what is to be done when the check is over."""


@dataclass(frozen=True)
class Fixture:
    """A fixture of a check file: a function, and the fixtures that it takes."""

    name: str
    make: Callable[..., Any]
    needs: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """A check as it is run: a function, the fixtures that it takes, and the values of its case."""

    name: str
    function: Callable[..., object]
    needs: tuple[str, ...]
    given: Given


@dataclass(frozen=True)
class CheckFile:
    """A file's checks in their order, and its fixtures by name."""

    cases: tuple[Case, ...]
    fixtures: Mapping[str, Fixture]

    def run(
        self,
        case: Case,
        outside: Outside,
        on_error: Callable[[BaseException], object] = lambda error: None,
    ) -> BaseException | None:
        """Run a check and end its fixtures. Return the first that was raised, without traceback.

        `on_error` gets each error with its traceback, while what the check made still lives. Only
        an interrupt and `pytest.exit` are raised, and then too the fixtures have ended.
        """
        errors: list[BaseException] = []

        def attempt(action: Callable[[], object]) -> None:
            try:
                action()
            except (KeyboardInterrupt, pytest.exit.Exception):
                raise
            except BaseException as error:  # a skip and SystemExit too: a check did not pass
                on_error(error)
                # a traceback would hold every value of the check, and all that led to it
                errors.append(error.with_traceback(None))

        with ExitStack() as ends:
            at_end: AtEnd = lambda end: ends.callback(attempt, end)  # noqa: E731
            values = _Values(self.fixtures, outside, case.given, at_end)
            ends.callback(values.forget)
            attempt(lambda: case.function(**{need: values.of(need) for need in case.needs}))
        return errors[0] if errors else None


class _Values:
    """What the fixtures made for one run of one check, each once, when it was first asked for."""

    def __init__(
        self, fixtures: Mapping[str, Fixture], outside: Outside, given: Given, at_end: AtEnd
    ) -> None:
        self._fixtures, self._outside, self._at_end = fixtures, outside, at_end
        self._made: dict[str, Any] = dict(given)
        self._made_outside: dict[str, Any] = {}

    def of(self, name: str) -> Any:
        if name not in self._made:
            fixture = self._fixtures.get(name)
            self._made[name] = self._of_outside(name) if fixture is None else self._make(fixture)
        return self._made[name]

    def forget(self) -> None:
        self._made.clear()  # probes know this object: a circle that would keep every tensor a while
        self._made_outside.clear()

    def _of_outside(self, name: str) -> Any:
        if name not in self._made_outside:
            if name not in self._outside:
                raise LookupError(f"no fixture is called {name}")
            self._made_outside[name] = self._outside[name](self.of)
        return self._made_outside[name]

    def _make(self, fixture: Fixture) -> Any:
        # a fixture that takes its own name means the one that it stands before
        needs = {
            need: self._of_outside(need) if need == fixture.name else self.of(need)
            for need in fixture.needs
        }
        made = fixture.make(**needs)
        if not inspect.isgeneratorfunction(fixture.make):
            return made
        for value in made:
            self._at_end(lambda: _finish(fixture.name, made))
            return value
        raise ValueError(f"the fixture {fixture.name} yielded nothing")


def _finish(name: str, generator: Generator[Any]) -> None:
    for _ in generator:
        raise ValueError(f"the fixture {name} yielded twice")
