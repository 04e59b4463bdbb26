"""A submission's verdicts as text for its student, and what only an instructor reads."""

from __future__ import annotations

from dataclasses import replace

from grader.box.tiers import Tier
from grader.feedback.render import to_text
from grader.instructor.bundles.single import Single
from grader.verdict.verdict import Verdict

MOST = 20_000
"""Characters of one exercise's text; a service may refuse results that are too long."""

UNBOXED = "The grader could not start its sandbox, so your code was not run. Tell your instructors."


def for_student(verdict: Verdict) -> str:
    """Return a verdict as lines; the reason why a person should look is left out."""
    return plain(to_text(replace(verdict, review="")))


def for_instructor(done: Single, tier: Tier) -> str:
    """Return what stands beside the points: the tier, the seed, notes for a person, mistakes."""
    if done.refused:
        return f"not graded: {done.refused}"
    lines = [tier.title, f"seed {done.seed}"]
    for verdict in done.verdicts:
        known = f", known mistake {verdict.mistake}" if verdict.mistake else ""
        lines.append(f"{verdict.exercise}: {verdict.outcome}{known}")
        if verdict.review:
            lines.append(f"  {'note' if verdict.scored else 'NEEDS REVIEW'}: {verdict.review}")
    return plain("\n".join(lines))


def plain(text: str) -> str:
    """Return text that any reader of JSON takes: no halves of characters, no control characters."""
    kept = "".join(map(_plain, text))
    return kept if len(kept) <= MOST else kept[:MOST] + "\n…"


def _plain(letter: str) -> str:
    if letter in "\n\t" or letter.isprintable():
        return letter
    return " " if letter.isspace() else "�"
