"""Pages for an instructor: one self-contained file each, read without script, server or network."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from grader.feedback.render import inline_code
from grader.feedback.style import style_of
from grader.files import inert
from grader.instructor import charts


def render_page(template: str, **facts: Any) -> str:
    """Return a page from `templates/`. All text is escaped.

    What turns the direction of text, which a student's line may hold, becomes a sign.
    """
    html = _environment().get_template(template).render(style=Markup(style_of()), **facts)
    return inert(html)


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("grader.instructor"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals |= {
        "histogram": charts.histogram,
        "stacked": charts.stacked,
        "key": charts.key,
        "HATCH": charts.HATCH,
    }
    found.filters |= {"number": number, "duration": duration, "inline": _inline}
    return found


def _inline(text: str) -> Markup:
    return Markup(inline_code(text))


def number(value: float | None) -> str:
    """Return points as people write them; a dash for none."""
    return "–" if value is None else f"{value:.4g}"


def duration(seconds: float) -> str:
    """Return a time in the unit that fits it, e.g. "3.5 h"."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
