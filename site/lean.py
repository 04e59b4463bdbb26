"""A mkdocs hook: leave out of a page what nobody sees, so that long chapters stay light.

The highlighter puts every name and every space into an element of its own, in the colour of plain
code. In a chapter these are a tenth of the page.
"""

from __future__ import annotations

import re
from typing import Any

# Pygments' short names of tokens that look like plain code here: names, spaces, plain text.
PLAIN = re.compile(r'<span class="(?:n|w)">([^<]*)</span>')


def on_page_content(html: str, **_: Any) -> str:
    """Unwrap the tokens that have no colour of their own."""
    return PLAIN.sub(r"\1", html)
