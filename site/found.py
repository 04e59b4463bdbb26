"""A mkdocs hook: what leads to the site and around it. Edit links, the feed of changes, robots.txt.

`SITE_URL` is where the site will stand, `REPO_URL` where its sources do; both come from the
environment (mkdocs.yml). Without the second there are no links to sources.
"""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import markdown
from markdown.extensions.toc import slugify
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

ATOM = "http://www.w3.org/2005/Atom"
BUILT = re.compile(r"<!-- Built by `[^`]+` from (\S+?);")
CHANGES = "CHANGELOG.md"


class Change(NamedTuple):
    """One line of the changelog: its bold beginning, the rest, its version, and when it was written."""

    title: str
    text: str
    version: str
    written: datetime


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: object) -> None:
    """Let a page that is built from another file lead to that file."""
    if not config.repo_url:
        page.edit_url = None
        return
    source = _source(markdown, page)
    way = "tree" if (Path(config.config_file_path).parent / source).is_dir() else "edit"
    page.edit_url = f"{config.repo_url.rstrip('/')}/{way}/main/{source}"


def _source(text: str, page: Page) -> str:
    built = BUILT.search(text)
    if built:
        return built[1]
    shown = re.fullmatch(r'\s*(?:# .+\s+)?--8<-- "([^"]+)"\s*', text)
    return shown[1] if shown else f"site/{page.file.src_uri}"


def on_post_build(config: MkDocsConfig) -> None:
    """Write the feed, and tell search engines where the list of pages is."""
    folder, address = Path(config.site_dir), str(config.site_url)
    source = Path(config.config_file_path).parent / CHANGES
    changes = sorted(changes_of(source), key=lambda change: change.written, reverse=True)
    (folder / "feed.xml").write_bytes(feed(changes, config.site_name, address))
    (folder / "robots.txt").write_text(f"User-agent: *\nSitemap: {address}sitemap.xml\n")


def changes_of(source: Path) -> list[Change]:
    """Return what the changelog lists. A line is as old as its last change in git."""
    days = _days(source)
    found, version = [], ""
    for day, line in zip(days, source.read_text(encoding="utf-8").splitlines(), strict=True):
        if line.startswith("## "):
            version = line.removeprefix("## ")
        elif match := re.match(r"- \*\*(.+?):?\*\*:? *(.*)", line):
            found.append(Change(match[1], match[2], version, day))
    return found


def _days(source: Path) -> list[datetime]:
    """Return when each line was written; the file's own date for all where git cannot tell."""
    blame = ["git", "blame", "--line-porcelain", source.name]
    try:
        done = subprocess.run(blame, cwd=source.parent, capture_output=True, text=True, check=True)
        seconds = [int(n) for n in re.findall(r"^author-time (\d+)$", done.stdout, re.MULTILINE)]
    except (OSError, subprocess.CalledProcessError):
        lines = source.read_text(encoding="utf-8").splitlines()
        seconds = [int(source.stat().st_mtime)] * len(lines)
    return [datetime.fromtimestamp(second, UTC) for second in seconds]


def feed(changes: list[Change], name: str, address: str) -> bytes:
    """Return an Atom feed of changes, newest first."""
    ElementTree.register_namespace("", ATOM)
    root = ElementTree.Element(f"{{{ATOM}}}feed")

    def add(parent: ElementTree.Element, tag: str, text: str = "", **given: str) -> None:
        ElementTree.SubElement(parent, f"{{{ATOM}}}{tag}", given).text = text or None

    page = f"{address}changelog.html"
    add(root, "title", f"What changed in {name}")
    add(root, "id", page)
    add(root, "link", href=page)
    add(root, "link", rel="self", href=f"{address}feed.xml")
    add(root, "updated", (changes[0].written if changes else datetime.now(UTC)).isoformat())
    author = ElementTree.SubElement(root, f"{{{ATOM}}}author")
    add(author, "name", name)
    for change in changes:
        entry = ElementTree.SubElement(root, f"{{{ATOM}}}entry")
        add(entry, "title", change.title)
        add(entry, "id", f"{page}?change={slugify(f'{change.version} {change.title}', '-')}")
        add(entry, "link", href=f"{page}#{slugify(change.version, '-')}")
        add(entry, "updated", change.written.isoformat())
        add(entry, "content", markdown.markdown(change.text), type="html")
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
