"""A mkdocs hook: from a page to where one works.

Each exercise's panel says which command opens it. Where COLAB_REPO or BINDER_URL is set, chapters and
sittings lead to their notebook there (mkdocs.yml's `extra` reads both).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

_CHAPTER = re.compile(r"chapters/((ch\d+)_\w+)(?:\.md|/(?!solutions\.md)[\w-]+\.md)")
_SOLUTION = re.compile(r"^\[[^\]]*\]\(solutions\.md#(\w+)\)\{ \.ut-solution \}$", re.MULTILINE)
_FIRST_SECTION = re.compile(r"^## ", re.MULTILINE)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Write the commands of a sitting's exercises, and the links to hosted notebooks."""
    found = _CHAPTER.fullmatch(page.file.src_uri)
    if found is None:
        return markdown
    chapter, short = found.groups()
    command = rf"```bash\nundertorch learn {short} --at \1\n```\n\n\g<0>"
    markdown = _SOLUTION.sub(command, markdown)
    links = hosted(chapter, config)
    if not links:
        return markdown
    guide = "../" * (page.file.src_uri.count("/")) + "for-students.md#begin"
    line = f"Open its notebook in {' or '.join(links)}; [what to run first]({guide}).\n\n"
    return _FIRST_SECTION.sub(lambda heading: line + heading[0], markdown, count=1)


def hosted(chapter: str, config: MkDocsConfig) -> list[str]:
    """Return links to a chapter's notebook at those services that are set."""
    root = Path(config.config_file_path).parent
    extra, links = config.extra, []
    if not extra.get("colab_repo") and not extra.get("binder_url"):
        return links
    (notebook,) = (root / "chapters" / chapter).glob("*.ipynb")
    path = quote(notebook.relative_to(root).as_posix(), safe="")
    if repository := extra.get("colab_repo"):
        place = f"{str(repository).strip('/')}/blob/main/{path.replace('%2F', '/')}"
        links.append(f"[Colab](https://colab.research.google.com/github/{place})")
    if server := extra.get("binder_url"):
        links.append(f"[Binder]({str(server).rstrip('/')}?labpath={path})")
    return links
