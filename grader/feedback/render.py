"""A verdict for people: HTML in notebooks, feedback and the site, plain text in a terminal.

Every string that could come from a student is escaped. Nothing here depends on time or seed.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Sequence
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
    """A verdict that shows itself, and what comes after it: sentences with code and links in Markdown."""

    verdict: Verdict
    after: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "\n".join([to_text(self.verdict), *_after_text(self.after)])

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": to_html(self.verdict, self.after)}


@dataclass(frozen=True)
class Trouble:
    """Grading itself could not start. Shown instead of a verdict; worth nothing."""

    message: str

    def __repr__(self) -> str:
        return "\n".join(_folded(self.message))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        html = f'<div class="ut ut-bad">{style_of("verdict.css")}<p>{inline_code(self.message)}</p></div>'
        return {"text/plain": repr(self), "text/html": as_utf8(html)}


TEXT_WIDTH = 80
"""Columns of a verdict as text, where nobody knows how many there are."""

_NO_MATHS = "tex2jax_ignore mathjax_ignore"
"""JupyterLab, formgrader and nbconvert set what stands between dollar signs as TeX, but not within these
classes. Code and messages are full of words that would be read as others than they are."""

_CLAIMED = "What the code did was observed beside it. Values prove themselves; this does not."


def score_text(verdict: Verdict) -> str:
    """Return the points as a bare number between 0 and the most there is."""
    return repr(float(min(max(verdict.points, 0.0), verdict.max_points)))


def to_html(verdict: Verdict, after: Sequence[str] = ()) -> str:
    """Return the verdict, and lines after it, as one self-contained element.

    It reads well without its style too: some front ends take that away.
    """
    parts = [style_of("verdict.css"), _head(verdict)]
    if verdict.tier and not verdict.tier.startswith("1"):
        parts.append(f'<p class="ut-banner">Run without a full sandbox: {escape(verdict.tier)}</p>')
    if verdict.diagnosis:
        parts.append(f'<p class="ut-diagnosis">{inline_code(verdict.diagnosis)}</p>')
    if shows_relation(verdict):
        alone = "" if verdict.diagnosis else "ut-diagnosis "
        parts.append(f'<p class="{alone}ut-relation">{inline_code(verdict.relation)}</p>')
    if verdict.summary:
        parts.append(f'<div class="ut-summary">{_message(verdict.summary)}</div>')
    if verdict.checks:
        failed = [check.name for check in verdict.checks if check.message]
        shares = _shares_differ(verdict)
        rows = "".join(_check(check, check.name in failed[1:], shares) for check in verdict.checks)
        parts.append(f'<ul class="ut-checks">{rows}</ul>')
    if verdict.review:
        parts.append(
            f'<p class="ut-note">A person will look at this. {inline_code(verdict.review)}</p>'
        )
    parts += [f'<p class="ut-note">{inline_code(note)}</p>' for note in verdict.notes]
    if verdict.chapter and verdict.outcome is not Outcome.PASSED:
        section = f"chapters/{verdict.chapter}.html#{verdict.exercise}"
        parts.append(_link(section, "Read this section again"))
    if after:
        parts.append(f'<div class="ut-after">{"".join(map(_after_html, after))}</div>')
    label = f"{verdict.title}: {verdict.outcome}, {points_text(verdict)}"
    html = (
        f'<div class="ut ut-{_tone(verdict)} {_NO_MATHS}" role="group" aria-label="{escape(label)}">'
        f"{''.join(parts)}</div>"
    )
    return as_utf8(html)


def to_text(verdict: Verdict, width: int | None = TEXT_WIDTH) -> str:
    """Return the verdict as lines of at most `width` columns; None leaves long lines whole.

    The first says outcome and points: whoever reads no further has read these.
    """
    lines = _folded(f"{verdict.outcome}, {points_text(verdict)}: {verdict.title}", width=width)
    if verdict.diagnosis:
        lines += ["", *_folded(verdict.diagnosis, "  ", width=width), ""]
    if shows_relation(verdict):
        between = [] if verdict.diagnosis else [""]
        lines += [*between, *_folded(verdict.relation, "  ", width=width), ""]
    if verdict.summary:
        lines += _message_lines(verdict.summary, "  ", width)
    shares = _shares_differ(verdict)
    for check in verdict.checks:
        worth = f" ({_points(check.points)})" if shares and check.points else ""
        first = f"  {_SIGNS[check.state]} "
        lines += _folded(f"{check.rubric}{worth}", first, " " * len(first), width)
        if check.message:
            lines += _message_lines(check.message, " " * 6, width)
    if verdict.review:
        lines += _folded(f"A person will look at this. {verdict.review}", "  ", width=width)
    for note in verdict.notes:
        lines += _folded(note, "  ", width=width)
    return "\n".join(lines)


def shows_relation(verdict: Verdict) -> bool:
    """Say whether a verdict tells how what came is related to what was expected.

    A known mistake says why. Where it is one of several, the relation helps to tell which.
    """
    return bool(verdict.relation) and not verdict.mistake


def _folded(
    text: str, first: str = "", rest: str | None = None, width: int | None = TEXT_WIDTH
) -> list[str]:
    """Return a text's lines, each folded at blanks; `first` and `rest` stand before them."""
    rest = first if rest is None else rest
    lines: list[str] = []
    for line in text.split("\n"):
        begin = rest if lines else first
        room = None if width is None else max(width, len(begin) + 20)
        if room is None or len(begin) + len(line) <= room:
            lines.append(begin + line)
        else:
            lines += textwrap.wrap(
                line,
                room,
                initial_indent=begin,
                subsequent_indent=rest,
                break_long_words=False,
                break_on_hyphens=False,
            )
    return lines


def points_text(verdict: Verdict) -> str:
    """Return e.g. "2.5 of 4 points"; without a number while nobody knows one."""
    if not verdict.scored:
        return f"no score yet, of {_points(verdict.max_points)}"
    return f"{verdict.points:g} of {_points(verdict.max_points)}"


def _points(number: float) -> str:
    shown = f"{round(number, 2):g}"
    return f"{shown} point{'' if shown == '1' else 's'}"


def _tone(verdict: Verdict) -> str:
    if verdict.outcome is Outcome.PASSED:
        return "good"
    return "idle" if verdict.outcome in (Outcome.NOT_ATTEMPTED, Outcome.NOT_RUN) else "bad"


def _head(verdict: Verdict) -> str:
    return (
        f'<p class="ut-head"><span class="ut-outcome">{escape(str(verdict.outcome))}</span> '
        f'<strong class="ut-title">{inline_code(verdict.title)}</strong> '
        f'<span class="ut-points">{points_text(verdict)}</span></p>'
    )


def _shares_differ(verdict: Verdict) -> bool:
    """Say whether some checks are worth more than others: else the signs say it all.

    Kept verdicts may have shares that were rounded to the hundredth.
    """
    worth = [check.points for check in verdict.checks if check.points]
    return bool(worth) and max(worth) - min(worth) > 0.01 * len(worth)


def _check(check: CheckResult, folded: bool, shares: bool) -> str:
    message = _message(check.message) if check.message else ""
    if folded:
        message = f"<details><summary>what came</summary>{message}</details>"
    state = check.state.value
    claim = f' <abbr title="{_CLAIMED}">observed</abbr>' if check.claimed else ""
    worth = (
        f' <span class="ut-share">{_points(check.points)}</span>' if shares and check.points else ""
    )
    return (
        f'<li class="ut-{state.replace(" ", "-")}">'
        f'<span class="ut-sign" role="img" aria-label="{state}">{_SIGNS[check.state]}</span> '
        f'<span class="ut-rubric">{inline_code(check.rubric)}{claim}</span>{worth}{message}</li>'
    )


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


def _message_lines(message: Message, indent: str, width: int | None) -> list[str]:
    lines = _folded(message.what, indent, width=width)
    column = max((len(label) for label, _ in message.rows), default=0)
    for label, text in message.rows:
        first = f"{indent}{label:<{column}}  "
        lines += _folded(text, first, " " * len(first), width)
    return lines


_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


def _after_html(sentence: str) -> str:
    """Return a sentence as a paragraph; a link to another page opens beside this one."""

    def link(found: re.Match[str]) -> str:
        elsewhere = "" if found[2].startswith("#") else ' target="_blank" rel="noopener"'
        return f'<a href="{found[2]}"{elsewhere}>{found[1]}</a>'

    return f"<p>{_LINK.sub(link, inline_code(sentence))}</p>"


def _after_text(after: Sequence[str]) -> list[str]:
    """Return the sentences as lines; addresses that one can open stand below."""
    lines = [""] if after else []
    for sentence in after:
        lines += _folded(_LINK.sub(r"\1", sentence), "  ", "    ")
        lines += [f"    {address}" for _, address in _LINK.findall(sentence) if address[0] != "#"]
    return lines


def inline_code(text: str) -> str:
    """Return text as HTML, what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
