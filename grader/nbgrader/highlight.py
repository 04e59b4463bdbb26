"""An answer's text as a feedback page shows it: in colours, or plain where colours would take long.

Colours come from expressions that a text can be made to be slow for. So they are given in a process
that has limits (see `grader.box.aside`), and only to texts of ordinary length.
"""

from __future__ import annotations

from functools import cache
from html import escape

from nbconvert.filters.highlight import Highlight2HTML

from grader.box.aside import Aside, Exceeded, Failed, Limits

LONGEST = 16 * 2**10
"""Characters of a text that gets colours: twice the longest answer of the course."""

LIMITS = Limits(cpu_seconds=0.2, wall_seconds=20.0)
"""An ordinary answer takes 5 ms."""


def answer_html(source: str) -> str:
    """Return a cell's text as HTML."""
    if len(source) <= LONGEST:
        try:
            return str(_aside().ask(source))
        except (Exceeded, Failed):
            pass  # nothing is lost but the colours
    return f'<div class="highlight"><pre>{escape(source)}</pre></div>'


@cache
def _aside() -> Aside:
    """Return this process's own, which ends with it."""
    highlight = Highlight2HTML(pygments_lexer="ipython3")
    highlight("pass")  # the lexer is made once, before the fork
    return Aside(lambda source: str(highlight(source)), LIMITS)
