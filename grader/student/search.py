"""What a search for a wrong line asks: forks of this process, one for each variant of an answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from grader.evidence.wire.channel import Transport
from grader.inside import serve
from grader.inside.probe import Probe
from grader.inside.process.budget import Budget
from grader.student.asking import cut_off
from grader.submission.program import Program, lines_above, lines_of
from grader.verdict.grading import Attempt
from grader.verdict.lines_run import LinesRun
from grader.verdict.locate import Lines, Subject


def in_forks(
    attempt: Attempt,
    label: str,
    with_text: Callable[[str], Attempt],
    probes: dict[str, Probe],
    budget: Budget,
) -> Subject:
    """Return the search's subject where each attempt is loaded in an empty `__main__`.

    `label` is that of the program's part that holds the answer.
    """
    text = dict(attempt.program.parts).get(label, "")

    def open_traced(attempt: Attempt, patience: float) -> tuple[Transport, Lines]:
        lines = LinesRun(f"<{label}>", len(lines_of(text)))
        return _fork(probes, budget, patience, None, lines.begin), lines

    def open_variant(attempt: Attempt, patience: float) -> Transport:
        return _fork(probes, budget, patience)

    above = lines_above(attempt.source or "", text)
    return Subject(attempt, text, with_text, open_variant, open_traced, above)


def in_forks_of_kernel(
    attempt: Attempt, cell: str, probes: dict[str, Probe], budget: Budget, names: dict[str, Any]
) -> Subject:
    """Return the search's subject where this kernel holds the answer, and all that it needs.

    `cell` is the text of the answer's cell as the student sees it. Of a variant only the answer's own cell is run again, in the fork.
    """
    program = attempt.program
    (label, text), *others = program.parts

    def with_text(text: str) -> Attempt:
        parts = ((label, text), *others)
        return Attempt(Program(program.exercise, parts, program.given), text, loaded=True)

    def open_variant(attempt: Attempt, patience: float) -> Transport:
        changed = attempt.program.parts[0][1]

        def prepare() -> None:
            cut_off()
            serve.run_cell(label, changed, names)

        return _fork(probes, budget, patience, names, prepare)

    def open_traced(attempt: Attempt, patience: float) -> tuple[Transport, Lines]:
        lines = LinesRun(label, len(lines_of(text)))

        def prepare() -> None:
            cut_off()
            lines.begin()

        return _fork(probes, budget, patience, names, prepare), lines

    above = lines_above(cell, text)
    return Subject(attempt, text, with_text, open_variant, open_traced, above)


def _fork(
    probes: dict[str, Probe],
    budget: Budget,
    patience: float,
    names: dict[str, Any] | None = None,
    prepare: Callable[[], object] = lambda: None,
) -> Transport:
    from grader.box.fork import Fork  # what it needs is not everywhere

    short = replace(budget, wall_seconds=min(budget.wall_seconds, patience))
    return Fork(probes, short, names, prepare)
