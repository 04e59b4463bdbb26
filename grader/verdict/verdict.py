"""A verdict: points, the checks' outcomes and the diagnosis, for one exercise of one submission."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from grader.course.course import Exercise
from grader.evidence.layout import Layout
from grader.evidence.outcome import Ended, Outcome
from grader.evidence.wire.graph import Node, nodes_of
from grader.verdict.checks import Check, CheckRun
from grader.verdict.compare import Mismatch
from grader.verdict.interview import Raised, StudentRaised
from grader.verdict.limits import exceeded
from grader.verdict.signature import signature_asked_for


class State(str, Enum):
    """What became of one check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Message:
    """What a student reads of a failure: a sentence, labelled rows, an explorer state, pictures."""

    what: str
    rows: tuple[tuple[str, str], ...] = ()
    link: str = ""
    layouts: tuple[tuple[str, Layout], ...] = ()
    graphs: tuple[tuple[str, tuple[Node, ...]], ...] = ()


@dataclass(frozen=True)
class CheckResult:
    """One rubric line of a verdict. A gate has no points."""

    name: str
    rubric: str
    points: float
    earned: float
    state: State
    message: Message | None = None
    claimed: bool = False


@dataclass(frozen=True)
class Verdict:
    """The verdict on one exercise. `review` is why a person should look at it, if one should;
    `chapter` is where the exercise stands, empty for a test cell of a teacher's own. `relation` is
    how what came is related to what was expected: a fact, whoever's mistake it was.
    """

    exercise: str
    title: str
    points: float
    max_points: float
    outcome: Outcome
    summary: Message | None = None
    checks: tuple[CheckResult, ...] = ()
    diagnosis: str = ""
    mistake: str = ""
    notes: tuple[str, ...] = ()
    review: str = ""
    tier: str = ""
    chapter: str = ""
    relation: str = ""

    @property
    def scored(self) -> bool:
        """Does it say what the answer is worth? While it needs review, nobody knows."""
        return self.outcome is not Outcome.NEEDS_REVIEW

    def to_data(self) -> dict[str, Any]:
        """Return the verdict as JSON data."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Verdict:
        """Return the verdict that `to_data` gave, after a way through JSON too."""
        checks = tuple(
            CheckResult(
                **{**check, "state": State(check["state"]), "message": _message(check["message"])}
            )
            for check in data["checks"]
        )
        parts = {
            "outcome": Outcome(data["outcome"]),
            "summary": _message(data["summary"]),
            "checks": checks,
            "notes": tuple(data["notes"]),
        }
        return cls(**{**data, **parts})


def _message(data: Mapping[str, Any] | None) -> Message | None:
    if data is None:
        return None
    rows = tuple((str(label), str(text)) for label, text in data["rows"])
    layouts = tuple(
        (str(label), Layout.from_data(layout)) for label, layout in data.get("layouts", ())
    )
    graphs = tuple((str(label), nodes_of(graph)) for label, graph in data.get("graphs", ()))
    return Message(data["what"], rows, data["link"], layouts, graphs)


def without_checks(
    exercise: Exercise, outcome: Outcome, summary: Message, review: str = ""
) -> Verdict:
    """Return the verdict on an exercise whose checks were not run: no points."""
    return Verdict(
        exercise.id,
        exercise.title,
        0.0,
        exercise.points,
        outcome,
        summary,
        review=review,
        chapter=exercise.chapter,
    )


def score(exercise: Exercise, runs: Sequence[CheckRun]) -> tuple[CheckResult, ...]:
    """Return the rubric lines. A failed gate, or the end of the process, stops the counting."""
    shares = _shares(exercise.points, [run.check for run in runs])
    results: list[CheckResult] = []
    over = False
    for run, share in zip(runs, shares, strict=True):
        check = run.check
        if over:
            results.append(CheckResult(check.name, check.rubric, share, 0.0, State.NOT_RUN))
            continue
        if run.error is None:
            results.append(CheckResult(check.name, check.rubric, share, share, State.PASSED))
            continue
        message = message_for(run.error, exercise.stub)
        results.append(CheckResult(check.name, check.rubric, share, 0.0, State.FAILED, message))
        over = check.weight == 0 or isinstance(run.error, Ended)
    return tuple(
        replace(result, claimed=run.check.claimed)
        for result, run in zip(results, runs, strict=True)
    )


def _shares(points: float, checks: Sequence[Check]) -> list[float]:
    """Split `points` by weight: equal checks are worth the same, so nothing is rounded here."""
    total = sum(check.weight for check in checks)
    if not total:
        raise ValueError("an exercise needs a check that is not a gate")
    return [points * check.weight / total for check in checks]


def earned_points(exercise: Exercise, checks: Sequence[CheckResult]) -> float:
    """Return the points of all checks together, rounded once, to the hundredth."""
    if all(check.earned == check.points for check in checks):
        return exercise.points
    return round(math.fsum(check.earned for check in checks), 2)


def message_for(error: BaseException, stub: str = "") -> Message:
    """Return what a student reads of a failed check. Never a traceback of ours.

    The exercise's `stub` says how its function is called.
    """
    if isinstance(error, Mismatch):
        return Message(error.what, error.rows, error.link, error.layouts, error.graphs)
    if isinstance(error, StudentRaised):
        return raised_message(error.raised, stub)
    if isinstance(error, Ended):
        return Message(error.detail)
    if over := exceeded(error):
        return Message(f"This check was stopped: what your code gave {over}.")
    if isinstance(error, AssertionError):
        text = str(error).split("\nassert ")[0].strip()
        return Message(text or "The check failed.")
    return Message(f"The check could not be completed ({type(error).__name__}).")


def says(error: BaseException) -> bool:
    """Say whether a check that ended so has words for it. Another error is one of the check's own."""
    return isinstance(error, AssertionError | Ended) or bool(exceeded(error))


def raised_message(raised: Raised, stub: str = "") -> Message:
    """Return an exception of the student's code, with the student's own lines."""
    if raised.is_a("Explained"):
        return Message(raised.message)
    if raised.type == "NotImplementedError" and not raised.message:
        return Message("Not written yet: the code raises NotImplementedError.")
    text = str(raised)
    asked_for = signature_asked_for(stub, raised)
    if asked_for is not None:
        return Message(
            "Your code cannot be called as the exercise asks.",
            (("asked for", asked_for), ("Python says", raised.message)),
        )
    if raised.type == "NameError":
        text += ". Is an import missing? After a restart of the kernel, run the cells above again."
    rows = tuple(
        (f"{'in ' + name + ', ' if name and name != '<module>' else ''}line {number}", line.strip())
        for name, number, line in raised.where[-3:]
    )
    given = (("on", raised.notes),) if raised.notes else ()
    return Message(f"Your code raised {text}", (*given, *rows))
