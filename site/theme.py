"""A mkdocs hook: the site takes its colours and type from the file that verdicts take theirs from."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add grader/feedback/theme.css to the site's assets."""
    found = find_spec("grader")  # looked up, not imported: that would bring torch
    assert found is not None and found.origin is not None
    sheet = Path(found.origin).parent / "feedback" / "theme.css"
    files.append(File.generated(config, "assets/theme.css", abs_src_path=str(sheet)))
    return files


def on_page_content(html: str, **_: Any) -> str:
    """Keep each style sheet once: every verdict brings its own, for where it stands alone."""
    seen: set[str] = set()

    def once(match: re.Match[str]) -> str:
        if match[0] in seen:
            return ""
        seen.add(match[0])
        return match[0]

    return re.sub(r"<style>.*?</style>", once, html, flags=re.DOTALL)
