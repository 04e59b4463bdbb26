"""A mkdocs hook: leave out of a page what nobody sees, so that long pages stay light.

The highlighter puts every name and every space into an element of its own, in the colour of plain
code: a tenth of a page. A corner of a table that says nothing heads nothing. And `extra.generator`
leaves out the theme's line in the footer only.
"""

from __future__ import annotations

import re
from typing import Any

# Pygments' short names of tokens that look like plain code here: names, spaces, plain text.
PLAIN = re.compile(r'<span class="(?:n|w)">([^<]*)</span>')


CORNER = re.compile(r"<th(?: [^>]*)?></th>")
GENERATOR = re.compile(r'<meta name="generator"[^>]*>\s*')


def on_page_content(html: str, **_: Any) -> str:
    """Unwrap the tokens that have no colour of their own; make empty headers plain cells."""
    return CORNER.sub("<td></td>", PLAIN.sub(r"\1", html))


def on_post_page(output: str, **_: Any) -> str:
    """Leave out what made the page."""
    return GENERATOR.sub("", output, count=1)


def on_post_template(output_content: str, **_: Any) -> str:
    """The same for 404.html, which is no page of ours."""
    return GENERATOR.sub("", output_content, count=1)
