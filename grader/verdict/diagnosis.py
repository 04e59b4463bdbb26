"""Which known mistake explains a failure: the one that fails the same checks in the same way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from grader.course.answers import Answer
from grader.evidence.outcome import Ended
from grader.verdict.checks import CheckRun
from grader.verdict.interview import Raised, StudentRaised

_NUMBER = re.compile(r"/\S+|0x[0-9a-f]+|\d+")
"""What differs from run to run in a message: paths, such as those of temporary files, and numbers."""
_OWN = re.compile(r"\b(raise|assert)\b")
_CHANCE = re.compile(r"\b(peer|rank|worker)\b", re.IGNORECASE)
"""Words of a process that lost another one: which of them it says hangs on who was faster."""


def diagnose(
    runs: Sequence[CheckRun], known: Iterable[tuple[Answer, Sequence[CheckRun]]]
) -> Answer | None:
    """Return the mistake whose evidence equals the student's wherever a check failed.

    `runs` have a failure; a mistake that was not run to its end explains nothing. Of several, the
    one that agrees on most of the passed checks too; of equals, the first. None if none matches.
    """
    best: tuple[int, Answer] | None = None
    for answer, theirs in known:
        if len(theirs) < len(runs) or not may_explain(theirs, runs):
            continue
        agreement = sum(_same_comparisons(a, b) for a, b in zip(runs, theirs, strict=True))
        if best is None or agreement > best[0]:
            best = agreement, answer
    return best[1] if best else None


def may_explain(mistake: Sequence[CheckRun], runs: Sequence[CheckRun]) -> bool:
    """Say whether the mistake, as far as it was run, fails just the checks that `runs` fail, alike."""
    return all(
        _same_failure(ours, theirs)
        for ours, theirs in zip(runs, mistake, strict=False)
        if ours.error or theirs.error
    )


def _same_failure(ours: CheckRun, theirs: CheckRun) -> bool:
    left, right = ours.error, theirs.error
    if left is None or right is None:
        return False
    if isinstance(left, StudentRaised) and isinstance(right, StudentRaised):
        return _same_exception(left.raised, right.raised) and _same_comparisons(ours, theirs)
    if isinstance(left, Ended) and isinstance(right, Ended):
        return left.outcome is right.outcome
    if type(left) is not type(right):
        return False
    if not ours.comparisons:
        return str(left) == str(right)
    return _same_comparisons(ours, theirs)


def _same_exception(ours: Raised, theirs: Raised) -> bool:
    """Say whether two exceptions have one cause, as far as that can be seen.

    What one's own `raise` says is free, and what an instrument says of several processes depends on
    who noticed first. What Python or PyTorch says tells what went wrong: a `RuntimeError` about a
    view explains none about sizes. Paths and numbers in it may differ. Where one process lost another,
    who noticed first decides the type too: the process that was left, or the instrument.
    """
    if _lost_another(ours) and _lost_another(theirs):
        return True
    if ours.type != theirs.type or _is_own(ours) != _is_own(theirs):
        return False
    if _is_own(ours) or not ours.where or not theirs.where:
        return True
    said, known = _said(ours), _said(theirs)
    return said == known or bool(_CHANCE.search(said) and _CHANCE.search(known))


def _lost_another(raised: Raised) -> bool:
    if raised.type == "RankDied":
        return True
    return "/gloo/" in raised.message and _CHANCE.search(_said(raised)) is not None


def _said(raised: Raised) -> str:
    """Return an exception's first line; behind it a worker's traceback may follow."""
    return _NUMBER.sub("#", raised.message.partition("\n")[0])


def _is_own(raised: Raised) -> bool:
    return bool(raised.where) and _OWN.search(raised.where[-1][2]) is not None


def _same_comparisons(ours: CheckRun, theirs: CheckRun) -> bool:
    return len(ours.comparisons) == len(theirs.comparisons) and all(
        a.same(b) for a, b in zip(ours.comparisons, theirs.comparisons, strict=True)
    )
