"""A verdict as one reads it who practises: nobody else will look at it."""

from __future__ import annotations

from dataclasses import replace

from grader.evidence.outcome import Outcome
from grader.verdict.verdict import Verdict


def for_practice(verdict: Verdict) -> Verdict:
    """Return the verdict without the word that a person will look at it: that is for graded runs.

    What a graded run would have a person look at is said, where the verdict has not said it.
    """
    if not verdict.review:
        return verdict
    said = () if verdict.outcome is Outcome.BLOCKED else (verdict.review,)
    return replace(verdict, review="", notes=(*verdict.notes, *said))
