"""The checks of one exercise, collected once and run as often as asked. Each is a pytest test."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
import torch

from grader.course.parameters import Values, render
from grader.evidence.outcome import Ended
from grader.inside.probe import Probe
from grader.verdict.cases import MalformedChecks
from grader.verdict.collect import collect
from grader.verdict.compare import Comparison, Record, recording
from grader.verdict.interview import Evidence, Interview
from grader.verdict.limits import JudgeLimits, Judging, OverLimit
from grader.verdict.runner import Case, CheckFile, Outside, ValueOf

_Check = TypeVar("_Check", bound=Callable[..., object])


def points(weight: float) -> Callable[[_Check], _Check]:
    """Give a check another weight than 1 in its exercise's points."""
    return pytest.mark.undertorch_points(weight)


MARKERS = {
    "undertorch_points": "undertorch_points(weight): a check's weight; 0 makes it a gate",
    "undertorch_claimed": "undertorch_claimed: a check of what was observed",
}
"""The marks of checks, as pytest wants them told."""

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
    """What one run of a check came to. `error` is None if it passed.

    `comparisons` are those that it made until it failed, `evidence` those that it could make of all
    that had been asked for by then: equal if it passed. `given` are the inputs it asked for last.
    """

    check: Check
    error: BaseException | None
    comparisons: tuple[Comparison, ...]
    evidence: tuple[Comparison, ...] = ()
    given: Mapping[str, Any] | None = None


Ask = Callable[[Probe, Mapping[str, Any]], Evidence]
"""Brings the evidence of a probe on inputs."""


class Probed:
    """What a check receives for a probe's name: evidence, asked for when it is first looked at."""

    def __init__(self, probe: Probe, ask: Ask, value_of: ValueOf) -> None:
        self._probe = probe
        self._ask = ask
        self._value_of = value_of

    def ask(self, *args: Any, **inputs: Any) -> Evidence:
        """Run the probe on other inputs, given in order or by name."""
        given = {**dict(zip(self._probe.inputs, args, strict=False)), **inputs}
        record = recording.get()
        if record is not None:
            record.ask(given)
        return self._ask(self._probe, given)

    def __getattr__(self, name: str) -> Any:
        inputs = {name: self._value_of(name) for name in self._probe.inputs}
        return getattr(self.ask(**inputs), name)


def generator_for(seed: int, scope: str) -> torch.Generator:
    """Return a generator for the inputs of `scope`, an exercise: the same for the same seed."""
    digest = hashlib.sha256(f"{seed}/{scope}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


OnError = Callable[[BaseException], object]
"""Is shown the error of a check, with its traceback."""


class Suite:
    """The checks of one `test_<exercise>.py`, for the values of the exercise's parameters.

    Raises `MalformedChecks` if the file is missing, cannot be read, or a check is not what one must be.
    """

    def __init__(self, path: Path, probes: dict[str, Probe], values: Values) -> None:
        self._probes, self._values = probes, values
        self._exercise = path.stem.removeprefix("test_")
        if not path.is_file():
            raise MalformedChecks(f"{path} is missing: it holds the checks of {self._exercise}.")
        self._file = collect(path, ("rng", "parameters", *probes), MARKERS)
        self.checks = tuple(_describe(case, path, values) for case in self._file.cases)
        if not any(check.weight for check in self.checks):
            raise MalformedChecks(
                f"{path} holds no checks that give points: write a function test_... that is no @gate."
            )

    def run(
        self,
        interview: Interview,
        seed: int,
        *,
        stop: Callable[[list[CheckRun]], bool] = lambda runs: False,
        on_error: OnError = lambda error: None,
        order: Sequence[int] | None = None,
        limits: JudgeLimits | None = None,
    ) -> list[CheckRun]:
        """Run the checks against what `interview` can tell, in the file's order.

        `order` are the numbers of those to run, in another one. `stop` looks at the runs so far, after
        each, and says whether they are enough. `on_error` is given each error with its traceback while
        the check's fixtures still live: a debugger. `limits` are for all checks together; a check that
        goes over them fails.
        """
        outside = self._outside(lambda probe, inputs: interview.ask(probe, inputs), seed)
        known = self._outside(lambda probe, inputs: interview.answered(probe, inputs), seed)
        runs: list[CheckRun] = []
        judging = Judging(limits) if limits else None
        threads = torch.get_num_threads()
        try:
            # What checks expect must not depend on this machine's width; and on tensors this small
            # threads only wait for each other, 20 ms a call on a busy machine.
            torch.set_num_threads(1)
            for number in range(len(self.checks)) if order is None else order:
                check, case = self.checks[number], self._file.cases[number]
                # in a context of its own, which is gone with what was set in it
                record = Record()
                error = copy_context().run(
                    _recorded, record, self._file, case, outside, on_error, judging
                )
                whole = Record(looks_on=True)
                if error is None or isinstance(error, Ended | OverLimit):
                    whole = record
                else:
                    # Once more, to see what else differs. Nothing new is asked: that might hang, and
                    # end what comes after. What torch warns of here, nobody did.
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        copy_context().run(
                            _recorded, whole, self._file, case, known, _ignored, judging
                        )
                seen = tuple(record.comparisons), tuple(whole.comparisons)
                runs.append(CheckRun(check, error, *seen, record.given))
                if stop(runs):
                    break
        finally:
            torch.set_num_threads(threads)
        return runs

    def _outside(self, ask: Ask, seed: int) -> Outside:
        """Return what a check may ask for beside the fixtures of its file, for one run."""

        def probed(probe: Probe) -> Callable[[ValueOf], Probed]:
            return lambda value_of: Probed(probe, ask, value_of)

        return {
            "rng": lambda value_of: generator_for(seed, self._exercise),
            "parameters": lambda value_of: dict(self._values),
            **{name: probed(probe) for name, probe in self._probes.items()},
        }


def _ignored(error: BaseException) -> None:
    """Hear of an error that has been told already."""


def _recorded(
    record: Record,
    file: CheckFile,
    case: Case,
    outside: Outside,
    on_error: OnError,
    judging: Judging | None,
) -> BaseException | None:
    recording.set(record)
    if judging is None:
        return file.run(case, outside, on_error)
    try:
        with judging.check():
            return file.run(case, outside, on_error)
    except OverLimit as over:  # after the check's last line
        return over


def _describe(case: Case, path: Path, values: Values) -> Check:
    marks = {mark.name: mark for mark in reversed(getattr(case.function, "pytestmark", ()))}
    weight = float(marks["undertorch_points"].args[0]) if "undertorch_points" in marks else 1.0
    rubric = (case.function.__doc__ or "").strip().split("\n")[0]
    if not rubric:
        line = case.function.__code__.co_firstlineno
        raise MalformedChecks(
            f"{path}:{line}: {case.name} needs a docstring: it is the rubric line that a student reads."
        )
    try:
        rubric = render(rubric, values)
    except ValueError as error:
        raise MalformedChecks(f"{path}: the docstring of {case.name}: {error}") from None
    return Check(case.name, rubric, weight, "undertorch_claimed" in marks)
