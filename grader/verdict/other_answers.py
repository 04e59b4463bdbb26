"""Answers to other exercises that an answer runs: what they get wrong costs it too, and that is said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from grader.evidence.outcome import Outcome
from grader.submission.program import Program
from grader.verdict.verdict import Verdict

_SILENT = (Outcome.PASSED, Outcome.NOT_ATTEMPTED, Outcome.NOT_RUN, Outcome.BLOCKED)


def other_answers(program: Program, exercises: Iterable[str]) -> tuple[str, ...]:
    """Return the exercises whose solution cells belong to the program of another, in their order."""
    labels = {label for label, _ in program.parts} - program.given - {program.exercise}
    return tuple(name for name in exercises if name in labels)


def naming(verdict: Verdict, ran: Iterable[str]) -> Verdict:
    """Return the verdict with a note on the answers that it `ran` besides, where one may be to blame.

    A known mistake that explains the failure makes it alone.
    """
    names = [f"`{name}`" for name in ran]
    if not names or verdict.mistake or verdict.outcome in _SILENT:
        return verdict
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
    note = f"Your {listed} ran here as well. A mistake there shows here too."
    return replace(verdict, notes=(*verdict.notes, note))
