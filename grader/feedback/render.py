"""A verdict for people: HTML in notebooks, feedback and the site, plain text in a terminal.

Every string that could come from a student is escaped. Nothing here depends on time or seed.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from html import escape

from grader.evidence.outcome import Outcome
from grader.feedback.graph_picture import graphs_html
from grader.feedback.storage_picture import verdict_html
from grader.feedback.style import style_of
from grader.files import as_utf8
from grader.verdict.verdict import CheckResult, Message, State, Verdict

SITE = "UNDERTORCH_SITE"
"""Environment variable with the address of the course's site; verdicts then link to its pages."""

_SIGNS = {State.PASSED: "✓", State.FAILED: "✗", State.NOT_RUN: "–"}


@dataclass(frozen=True)
class Report:
    """A verdict that shows itself. nbgrader reads its plain text, so that is the score alone."""

    verdict: Verdict

    def __repr__(self) -> str:
        return score_text(self.verdict)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": score_text(self.verdict), "text/html": to_html(self.verdict)}


@dataclass(frozen=True)
class Trouble:
    """Grading itself could not start. Shown instead of a verdict; worth nothing."""

    message: str

    def __repr__(self) -> str:
        return "0.0"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        html = (
            f'<div class="ut ut-bad">{style_of("verdict.css")}<p>{escape(self.message)}</p></div>'
        )
        return {"text/plain": "0.0", "text/html": html}


_CLAIMED = "What the code did was observed beside it. Values prove themselves; this does not."


def score_text(verdict: Verdict) -> str:
    """Return the points as a bare number between 0 and the most there is."""
    return repr(float(min(max(verdict.points, 0.0), verdict.max_points)))


def to_html(verdict: Verdict) -> str:
    """Return the verdict as one self-contained element."""
    parts = [style_of("verdict.css"), _head(verdict)]
    if verdict.tier and not verdict.tier.startswith("1"):
        parts.append(f'<p class="ut-banner">Run without a full sandbox: {escape(verdict.tier)}</p>')
    if verdict.diagnosis:
        parts.append(f'<p class="ut-diagnosis">{inline_code(verdict.diagnosis)}</p>')
    if verdict.summary:
        parts.append(f'<div class="ut-summary">{_message(verdict.summary)}</div>')
    if verdict.checks:
        failed = [check.name for check in verdict.checks if check.message]
        rows = "".join(_check(check, check.name in failed[1:]) for check in verdict.checks)
        parts.append(f'<ul class="ut-checks">{rows}</ul>')
    if verdict.review:
        parts.append(
            f'<p class="ut-note">A person will look at this. {inline_code(verdict.review)}</p>'
        )
    parts += [f'<p class="ut-note">{inline_code(note)}</p>' for note in verdict.notes]
    if verdict.chapter and verdict.outcome is not Outcome.PASSED:
        section = f"chapters/{verdict.chapter}.html#{verdict.exercise}"
        parts.append(_link(section, "Read this section again"))
    label = f"{verdict.title}: {verdict.outcome}, {points_text(verdict)}"
    html = (
        f'<div class="ut ut-{_tone(verdict)}" role="group" aria-label="{escape(label)}">'
        f"{''.join(parts)}</div>"
    )
    return as_utf8(html)


def to_text(verdict: Verdict) -> str:
    """Return the verdict as lines for a terminal."""
    lines = [f"{verdict.title}: {verdict.outcome}, {points_text(verdict)}"]
    if verdict.diagnosis:
        lines += ["", f"  {verdict.diagnosis}", ""]
    if verdict.summary:
        lines += _message_lines(verdict.summary)
    for check in verdict.checks:
        lines.append(f"  {_SIGNS[check.state]} {check.rubric}{_check_points(check)}")
        if check.message:
            lines += _message_lines(check.message)
    if verdict.review:
        lines.append(f"  A person will look at this. {verdict.review}")
    return "\n".join([*lines, *(f"  {note}" for note in verdict.notes)])


def points_text(verdict: Verdict) -> str:
    """Return e.g. "2.5 of 4 points"."""
    return f"{verdict.points:g} of {verdict.max_points:g} points"


def _tone(verdict: Verdict) -> str:
    if verdict.outcome is Outcome.PASSED:
        return "good"
    return "idle" if verdict.outcome is Outcome.NOT_ATTEMPTED else "bad"


def _head(verdict: Verdict) -> str:
    return (
        f'<p class="ut-head"><span class="ut-outcome">{escape(str(verdict.outcome))}</span>'
        f'<strong class="ut-title">{inline_code(verdict.title)}</strong>'
        f'<span class="ut-points">{points_text(verdict)}</span></p>'
    )


def _check(check: CheckResult, folded: bool) -> str:
    message = _message(check.message) if check.message else ""
    if folded:
        message = f"<details><summary>what came</summary>{message}</details>"
    state = check.state.value
    claim = f' <abbr title="{_CLAIMED}">observed</abbr>' if check.claimed else ""
    return (
        f'<li class="ut-{state.replace(" ", "-")}">'
        f'<span class="ut-sign" role="img" aria-label="{state}">{_SIGNS[check.state]}</span>'
        f'<span class="ut-rubric">{inline_code(check.rubric)}{claim}</span>'
        f'<span class="ut-share">{_check_points(check).strip(" ()")}</span>{message}</li>'
    )


def _check_points(check: CheckResult) -> str:
    return f" ({check.earned:g} of {check.points:g})" if check.points else ""


def _message(message: Message) -> str:
    rows = "".join(
        f"<dt>{inline_code(label)}</dt><dd><code>{escape(text)}</code></dd>"
        for label, text in message.rows
    )
    table = f"<dl>{rows}</dl>" if rows else ""
    if message.link:
        table += _link(f"explorers/{message.link}", "See it in the explorer")
    picture = verdict_html(message.layouts) if message.layouts else ""
    picture += graphs_html(message.graphs) if message.graphs else ""
    return f'<div class="ut-message"><p>{inline_code(message.what)}</p>{table}{picture}</div>'


def _link(page: str, text: str) -> str:
    """Return a link into the course's site; nothing where nobody said where that is."""
    site = os.environ.get(SITE, "").rstrip("/")
    if not site:
        return ""
    return f'<p><a href="{escape(f"{site}/{page}")}" target="_blank" rel="noopener">{text}</a></p>'


def _message_lines(message: Message) -> list[str]:
    lines = [f"      {message.what}"]
    width = max((len(label) for label, _ in message.rows), default=0)
    return lines + [f"      {label:<{width}}  {text}" for label, text in message.rows]


def inline_code(text: str) -> str:
    """Return text as HTML, what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
