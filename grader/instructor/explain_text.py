"""An explanation as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from grader.feedback.render import shows_relation, to_text
from grader.instructor.explain import Asked, Explanation, Step

_SIGNS = {"passed": "✓", "failed": "✗", "not run": "–"}

SHOWN = 12
"""Most questions, and most comparisons, of a check that are shown, and most warnings of an answer."""

PRINTED = 500
"""Most characters shown of what the code printed, and of a warning."""


def explanation_text(found: Explanation) -> str:
    """Return the explanation: the verdict as the student read it, then check by check."""
    waited = f", waited for {found.seconds:.2f} s" if found.seconds is not None else ""
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    lines = [
        f"{found.student}, {found.chapter}, {found.verdict.exercise}",
        f"seed {found.seed}, tier {found.tier}{waited}",
        f"{versions}; submission {found.submission[:12]}",
        "",
        to_text(found.verdict),
    ]
    if found.verdict.mistake:
        lines.append(f"  known mistake: {found.verdict.mistake}")
    if found.verdict.relation and not shows_relation(found.verdict):
        lines.append(f"  relation: {found.verdict.relation}")
    for step in found.steps:
        lines += ["", *_step(step)]
    if found.trouble:
        lines += ["", found.trouble]
    if any(step.given != step.now and step.given != "not run" for step in found.steps):
        lines += ["", "Today's checks judge otherwise. To apply them: undertorch regrade"]
    return "\n".join(lines)


def _step(step: Step) -> Iterator[str]:
    now = "" if step.now == step.given else f", today {step.now}"
    points = f" ({step.points} points)" if step.points else ""
    yield f"{_SIGNS.get(step.given, '?')} {step.check}: {step.given}{now}{points}"
    yield f"    {step.rubric}"
    for asked in step.asked[:SHOWN]:
        yield from _asked(asked)
    for saw in step.saw[:SHOWN]:
        yield f"  compared  {saw}"
    if max(len(step.asked), len(step.saw)) > SHOWN:
        yield f"  {len(step.asked)} questions, {len(step.saw)} comparisons; --json has all"
    if step.message:
        yield f"  why       {step.message}"
    for label, text in step.expected:
        yield f"            {label}: {text}"


def _asked(asked: Asked) -> Iterator[str]:
    inputs = ", ".join(f"{name}={text}" for name, text in asked.inputs.items())
    yield f"  asked     {asked.probe}({inputs})"
    yield f"  answered  {asked.answer}"
    if asked.inputs_after is not None:
        for name, text in asked.inputs_after.items():
            if text != asked.inputs.get(name):
                yield f"  changed   {name}={text}"
    for warning in asked.warnings[:SHOWN]:
        yield f"  warned    {warning[:PRINTED]!r}"
    if asked.printed:
        yield f"  printed   {asked.printed[:PRINTED]!r}"
