"""Pages for an instructor: one self-contained file each, read without script, server or network."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from grader.feedback.style import style_of
from grader.instructor import charts


def render(template: str, **facts: Any) -> str:
    """Return a page from `templates/`. All text is escaped; halves of surrogate pairs become `?`."""
    html = _environment().get_template(template).render(look=Markup(style_of()), **facts)
    return html.encode("utf-8", "replace").decode("utf-8")


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
    found.filters |= {"number": number, "duration": duration, "inline": inline}
    return found


def inline(text: str) -> Markup:
    """Return text as HTML, what stands between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def number(value: float | None) -> str:
    """Return points as people write them; a dash for none."""
    return "–" if value is None else f"{value:.4g}"


def duration(seconds: float) -> str:
    """Return a time in the unit that fits it, e.g. "3.5 h"."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
