"""A mkdocs hook: leave out of a page what nobody sees, so that long pages stay light.

The highlighter puts every name, space and bracket into an element of its own, in the colour of plain
code: a tenth of a page. A corner of a table that says nothing heads nothing. `extra.generator`
leaves out the theme's line in the footer only. The theme indents, and half of its lines are empty. And
every page would load the style of the one that documents Python.
"""

from __future__ import annotations

import re
from typing import Any

# Pygments' short names of tokens that look like plain code here: names, spaces, brackets and commas.
PLAIN = re.compile(r'<span class="(?:n|p|w)">([^<]*)</span>')
CORNER = re.compile(r"<th(?: [^>]*)?></th>")
GENERATOR = re.compile(r'<meta name="generator"[^>]*>\s*')
API = re.compile(r'<link rel="stylesheet" href="[^"]*_mkdocstrings\.css">\s*')
AS_IT_IS = re.compile(r"(<(pre|script|style|textarea)\b.*?</\2>)", re.DOTALL)
BREAK = re.compile(r"[ \t]*\n[ \t\n]*")


def on_page_content(html: str, **_: Any) -> str:
    """Unwrap the tokens that have no colour of their own; make empty headers plain cells."""
    return CORNER.sub("<td></td>", PLAIN.sub(r"\1", html))


def on_post_page(output: str, **_: Any) -> str:
    """Leave out what made the page, styles of what it has not, and indentation."""
    if 'class="doc ' not in output:
        output = API.sub("", output, count=1)
    return _close(GENERATOR.sub("", output, count=1))


def on_post_template(output_content: str, template_name: str, **_: Any) -> str:
    """The same for 404.html, which is no page of ours."""
    if not template_name.endswith(".html"):
        return output_content
    return _close(GENERATOR.sub("", API.sub("", output_content, count=1), count=1))


def _close(html: str) -> str:
    """Return a page without blanks around its line breaks, but where they show."""
    parts = AS_IT_IS.split(html)  # text, what stays, its tag, text, ...
    parts[::3] = [BREAK.sub("\n", text) for text in parts[::3]]
    del parts[2::3]
    return "".join(parts)
