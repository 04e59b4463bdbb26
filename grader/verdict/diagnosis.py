"""Which known mistake explains a failure: the one that fails the same checks in the same way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from grader.course.answers import Answer
from grader.verdict.marks import Mark


@dataclass(frozen=True)
class Diagnosis:
    """What explains a failure, in words. `mistake` is the known mistake's name, "" if it is one of several."""

    mistake: str
    words: str


def diagnose(
    marks: Sequence[Mark], known: Iterable[tuple[Answer, Sequence[Mark]]]
) -> Diagnosis | None:
    """Return what the mistakes say whose evidence equals the student's wherever a check failed.

    `marks` have a failure; a mistake that was not run to its end explains nothing. Of several, those
    that agree on most of what else was seen: by passed checks, and behind the first value that
    differs. If these say different things, what they have in
    common, or None: nobody knows which of them it is. Spellings of one mistake say the same.
    """
    found: dict[int, list[Answer]] = {}
    for answer, theirs in known:
        if len(theirs) < len(marks) or not may_explain(theirs, marks):
            continue
        both = list(zip(marks, theirs, strict=True))
        agreement = sum(a.same_evidence(b) + (a.rest == b.rest) for a, b in both)
        found.setdefault(agreement, []).append(answer)
    if not found:
        return None
    best = found[max(found)]
    if all(answer.explanation == best[0].explanation for answer in best):
        return Diagnosis(best[0].name, best[0].explanation)
    words = _in_common([answer.explanation for answer in best])
    return Diagnosis("", words) if words else None


_SENTENCE = re.compile(r"(?<=[.!?])\s+")


def _in_common(explanations: Sequence[str]) -> str:
    """Return the first sentences that all of them say."""
    common = []
    for sentences in zip(*map(_SENTENCE.split, explanations), strict=False):
        if len(set(sentences)) > 1:
            break
        common.append(sentences[0])
    return " ".join(common)


def may_explain(mistake: Sequence[Mark], marks: Sequence[Mark]) -> bool:
    """Say whether the mistake, as far as it was run, fails just the checks that `marks` fail, alike."""
    return all(
        ours.same_failure(theirs)
        for ours, theirs in zip(marks, mistake, strict=False)
        if ours.failure or theirs.failure
    )
