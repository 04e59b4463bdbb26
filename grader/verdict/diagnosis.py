"""Which known mistake explains a failure: the one that fails the same checks in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grader.course.answers import Answer
from grader.verdict.marks import Mark


def diagnose(
    marks: Sequence[Mark], known: Iterable[tuple[Answer, Sequence[Mark]]]
) -> Answer | None:
    """Return the mistake whose evidence equals the student's wherever a check failed.

    `marks` have a failure; a mistake that was not run to its end explains nothing. Of several, the
    one that agrees on most of the passed checks too; of equals, the first. None if none matches.
    """
    best: tuple[int, Answer] | None = None
    for answer, theirs in known:
        if len(theirs) < len(marks) or not may_explain(theirs, marks):
            continue
        agreement = sum(a.same_evidence(b) for a, b in zip(marks, theirs, strict=True))
        if best is None or agreement > best[0]:
            best = agreement, answer
    return best[1] if best else None


def may_explain(mistake: Sequence[Mark], marks: Sequence[Mark]) -> bool:
    """Say whether the mistake, as far as it was run, fails just the checks that `marks` fail, alike."""
    return all(
        ours.same_failure(theirs)
        for ours, theirs in zip(marks, mistake, strict=False)
        if ours.failure or theirs.failure
    )
