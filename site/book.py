"""A mkdocs hook: the chapters as a book. Their pages in the navigation, links past the overviews (of
the myths, too), and solutions out of sight of search engines, or left out.

A chapter's overview lists what its pages hold, each link with the anchor of what it leads to. So a
link to a chapter's section, `chapters/ch02_strides.md#reshape`, can be written without knowing in
which sitting the section is: here it becomes one to the page that has it.
"""

from __future__ import annotations

import os
import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

SOLUTIONS = "UNDERTORCH_SITE_SOLUTIONS"
"""The variable of the environment: with `none` for a value, the site has no solutions."""

_MOVED = re.compile(r"\]\(([\w/-]+\.md)#([\w-]+)\)\{ #\2 \.ut-moved \}")
_SITTING = re.compile(r"^### \d+\. \[.*\]\(([\w/-]+\.md)\)\{ #(sitting-[\w-]+) \.ut-moved \}", re.M)
_LINK = re.compile(r"(\]\()((?:\.\./)*(?:chapters/\w+|myths)\.md)#([\w-]+)\)")
_MYTHS_TITLE = re.compile(r'^title: "Myths: (.*)"$', re.MULTILINE)
_ONE_SOLUTION = re.compile(r"^\[[^\]]*\]\([^)]*\)\{ \.ut-solution \}$", re.MULTILINE)
_PLAIN_CODE = re.compile(r'<div class="(language-\w+ highlight)">')


@cache
def _overview(path: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return a chapter's sitting pages in order, and the page of each anchor.

    A page that is not there has none: that it is missing is mkdocs's own to say.
    """
    if not path.is_file():
        return (), {}
    text = path.read_text(encoding="utf-8")
    sittings = _SITTING.findall(text)
    pages = {anchor: page for page, anchor in sittings}
    pages |= {anchor: page for page, anchor in _MOVED.findall(text)}
    return tuple(page for page, _ in sittings), pages


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put each chapter's sittings below it in the navigation, and its myths below the claims."""
    _overview.cache_clear()  # `mkdocs serve` builds again and again
    for entry in config.nav or ():
        for title, pages in entry.items() if isinstance(entry, dict) else ():
            if title == "Chapters":
                entry[title] = [_chapter(one, Path(config.docs_dir)) for one in pages]
            if title == "Myths":
                found = sorted(Path(config.docs_dir, "myths").glob("*.md"))
                entry[title] = [{"Overview": pages}, *map(_myths, found)]
    return config


def _chapter(entry: dict[str, str], docs: Path) -> dict[str, Any]:
    ((title, overview),) = entry.items()
    sittings, _ = _overview(docs / overview)
    folder = posixpath.dirname(overview)
    pages = [{"Overview": overview}, *(posixpath.join(folder, page) for page in sittings)]
    return {title: pages if sittings else overview}


def _myths(path: Path) -> dict[str, str]:
    """Return a page of myths by its subject alone: the others around it say what they are about."""
    (subject,) = _MYTHS_TITLE.findall(path.read_text(encoding="utf-8"))
    return {subject: f"myths/{path.name}"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Leave out the pages of solutions, if that was asked for."""
    if _left_out():
        for file in list(files):
            if _is_solutions(file.src_uri):
                files.remove(file)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Lead links to a chapter's section, or to a myth, to the page that has it."""
    here = posixpath.dirname(page.file.src_uri)

    def led(match: re.Match[str]) -> str:
        overview = posixpath.normpath(posixpath.join(here, match[2]))
        _, known = _overview(Path(config.docs_dir, overview))
        if match[3] not in known:
            return match[0]
        target = posixpath.join(posixpath.dirname(match[2]), known[match[3]])
        # an overview's own anchor of a sitting is the top of that sitting's page
        anchor = "" if match[3].startswith("sitting-") else f"#{match[3]}"
        return f"{match[1]}{target}{anchor})"

    markdown = _LINK.sub(led, markdown)
    return _ONE_SOLUTION.sub("", markdown) if _left_out() else markdown


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Keep code out of the search: who looks for a word wants the sentence that explains it."""
    if page.file.src_uri.startswith(("chapters/", "myths")):
        return _PLAIN_CODE.sub(r'<div class="\1" data-search-exclude>', html)
    return html


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Ask search engines to leave out solutions."""
    if _is_solutions(page.file.src_uri):
        return output.replace("<head>", '<head><meta name="robots" content="noindex">', 1)
    return output


def _is_solutions(address: str) -> bool:
    return re.fullmatch(r"chapters/\w+/solutions\.md", address) is not None


def _left_out() -> bool:
    return os.environ.get(SOLUTIONS, "") == "none"
