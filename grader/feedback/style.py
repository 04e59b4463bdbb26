"""Style sheets as they travel inside an output: the list of colours first, no comments, one line."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path


@cache
def style_of(*sheets: str) -> str:
    """Return theme.css and more sheets of this folder as a `<style>` element."""
    here = Path(__file__).parent
    css = "".join((here / name).read_text(encoding="utf-8") for name in ("theme.css", *sheets))
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    return "<style>" + re.sub(r"\s+", " ", css).strip() + "</style>"
