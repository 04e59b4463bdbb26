"""A mkdocs hook: pages lead back to the questions that lead to them.

A question says where to go on, and in which state an explorer shows its answer. The other way round,
a sitting's page and an explorer's end with the questions that they answer; an explorer that shows none
ends with its chapter's.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

MOST = 6
"""How many questions a page ends with: first those that lead to it most often."""

_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_SECTION = re.compile(r"\]\(\.\./chapters/(\w+)\.md#([\w-]+)\)")
_EXPLORER = re.compile(r'^explorer: "(\w+)', re.MULTILINE)
_ANCHOR = re.compile(r'<h[1-6][^>]* id="([\w-]+)"')
_SITTING = re.compile(r"chapters/(\w+)/(?!solutions\.md)[\w-]+\.md")
_ENDS = {"chapters": '<div class="ut-answer"', "explorers": '<details class="note">'}
"""What the last part of a page begins with, by its folder."""


class Question(NamedTuple):
    """A question by its page's name: it leads to sections, by chapter and anchor, and to an explorer."""

    name: str
    title: str
    sections: tuple[tuple[str, str], ...]
    explorer: str


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Forget what was read: `mkdocs serve` builds again and again."""
    questions.cache_clear()
    return config


def on_page_content(html: str, page: Page, config: MkDocsConfig, **_: object) -> str:
    """Put the questions that a page answers above its end."""
    found = _answered(html, page.file.src_uri, Path(config.docs_dir))
    if not found:
        return html
    up = "../" * page.file.src_uri.count("/")
    items = [
        f'<li><a href="{up}questions/{one.name}.html">{_inline(one.title)}</a></li>'
        for one in found[:MOST]
    ]
    heading = '<h2 id="what-people-ask" class="ut-asked" data-search-exclude>What people ask</h2>'
    above, end, below = html.rpartition(_ENDS[page.file.src_uri.partition("/")[0]])
    return f"{above}{heading}<ul>{''.join(items)}</ul>\n{end}{below}"


def _inline(title: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(title))


@cache
def questions(folder: Path) -> tuple[Question, ...]:
    """Return all questions of a site's folder."""
    found = []
    for path in sorted(folder.glob("questions/*.md")):
        text = path.read_text(encoding="utf-8")
        title, explorer = _TITLE.search(text), _EXPLORER.search(text)
        if title and path.stem != "index":
            sections = tuple(_SECTION.findall(text))
            found.append(Question(path.stem, title[1], sections, explorer[1] if explorer else ""))
    return tuple(found)


def _answered(html: str, address: str, folder: Path) -> list[Question]:
    """Return the questions that a page answers; of a sitting's, those with most of their links in it first."""
    if match := _SITTING.fullmatch(address):
        here = {(match[1], anchor) for anchor in _ANCHOR.findall(html)}
        hits = [(len(here & set(one.sections)), one) for one in questions(folder)]
        return [one for hit, one in sorted(hits, key=lambda pair: -pair[0]) if hit]
    name = address.removeprefix("explorers/").removesuffix(".md")
    shown = [one for one in questions(folder) if one.explorer == name]
    if shown:
        return shown
    hits = [(_links_to(name, one), one) for one in questions(folder)]
    return [one for hit, one in sorted(hits, key=lambda pair: -pair[0]) if hit]


def _links_to(name: str, question: Question) -> int:
    """Return how many of a question's links go to the chapter of an explorer."""
    return sum(chapter.partition("_")[2] == name for chapter, _ in question.sections)
