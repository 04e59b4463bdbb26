"""What search engines and those who share a link get from every page of the built site."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from grader.building.questions import FOLDER, MOST_WORDS, read_questions
from grader.course.course import find_course
from tests.browser import ROOT
from tests.site.small import copy_without_pages

ADDRESS = "http://127.0.0.1:8000/"
"""mkdocs.yml's default; SITE_URL gives another."""

PNG = b"\x89PNG\r\n\x1a\n"
QUESTIONS = [
    (path, one) for path in sorted((ROOT / FOLDER).glob("*.py")) for one in read_questions(path)[1]
]


def tags(page: str, kind: str, key: str) -> dict[str, str]:
    found = re.findall(rf'<{kind} [^>]*?{key}="([^"]+)" (?:content|href)="([^"]*)"', page)
    return {name: html.unescape(value) for name, value in found}


def test_every_page_can_be_found_and_shared(built: Path) -> None:
    titles: dict[str, str] = {}
    addresses = []
    for path in sorted(built.rglob("*.html")):
        name = path.relative_to(built).as_posix()
        if name == "404.html":
            continue
        head = path.read_text(encoding="utf-8").partition("</head>")[0]
        title = html.unescape(re.findall(r"<title>(.*?)</title>", head)[0])
        assert title not in titles, (name, titles[title])
        titles[title] = name
        meta = tags(head, "meta", "name") | tags(head, "meta", "property")
        assert tags(head, "link", "rel")["canonical"] == meta["og:url"] == ADDRESS + name
        addresses.append(ADDRESS + name)
        assert meta["description"] == meta["og:description"] != "", name
        assert title.startswith(meta["og:title"]) and "Undertorch" in title, name
        card = built / meta["og:image"].removeprefix(ADDRESS)
        assert card.read_bytes().startswith(PNG), name
    sitemap = (built / "sitemap.xml").read_text(encoding="utf-8")
    assert sorted(re.findall("<loc>(.+?)</loc>", sitemap)) == sorted(addresses)
    assert "Undertorch - Undertorch" not in titles


def test_the_feed_lists_what_changed(built: Path) -> None:
    entries = ElementTree.parse(built / "feed.xml").findall("{*}entry")
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert len(entries) == len([line for line in lines if line.startswith("- **")])
    ids = {entry.findtext("{*}id") for entry in entries}
    assert len(ids) == len(entries)
    when = [entry.findtext("{*}updated") for entry in entries]
    assert when == sorted(when, reverse=True)


def test_below_another_address(tmp_path: Path) -> None:
    """What is missing leads home on a sub-path, pages lead to the file they are built from, cards are drawn."""
    pages = copy_without_pages(tmp_path)
    kept = (
        "explorers/strides.md",
        "index.md",
        "changelog.md",
        "questions/index.md",
        "questions/view-or-reshape.md",
    )
    for name in kept:
        shutil.copy(ROOT / "site" / name, pages / name)
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path / "built")]
    addresses = {"SITE_URL": "https://a.edu/under/torch", "REPO_URL": "https://b.edu/torch"}
    env = os.environ | addresses
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    missing = (tmp_path / "built" / "404.html").read_text(encoding="utf-8")
    links = re.findall(r'(?:href|src|action)="(?!https?:|#|data:)([^"]+)"', missing)
    assert not [link for link in links if not link.startswith(("/under/torch/", "javascript:"))]
    assert 'name="q"' in missing and 'content="noindex"' in missing
    for page, source in [
        ("index.html", "site/index.md"),
        ("changelog.html", "CHANGELOG.md"),
        ("questions/view-or-reshape.html", "site/questions/ch02_strides.py"),
    ]:
        text = (tmp_path / "built" / page).read_text(encoding="utf-8")
        assert f'href="https://b.edu/torch/edit/main/{source}"' in text
    cards = [path.read_bytes() for path in (tmp_path / "built" / "cards").rglob("*.png")]
    assert len(cards) == len(set(cards)) == len(kept)  # drawn, each with something of its own
    assert all(card.startswith(PNG) for card in cards)


def test_where_playwright_does_not_start_all_cards_are_plain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where its driver lacks a library: the site is built all the same, and says why."""
    pages = copy_without_pages(tmp_path)
    for name in ("index.md", "changelog.md"):
        shutil.copy(ROOT / "site" / name, pages / name)
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path / "built")]
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", shutil.which("false") or "")
    monkeypatch.delenv("SITE_CARDS", raising=False)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Playwright does not start: " in done.stderr
    assert len({card.read_bytes() for card in tmp_path.glob("built/cards/**/*.png")}) == 1


def test_every_question_has_its_page(built: Path) -> None:
    assert len(QUESTIONS) >= 60
    chapters = {chapter.id for chapter in find_course(ROOT).chapters()}
    index = (built / "questions/index.html").read_text(encoding="utf-8")
    for path, one in QUESTIONS:
        assert path.stem in chapters
        assert len(one.answer.split()) <= MOST_WORDS
        page = (built / f"questions/{one.name}.html").read_text(encoding="utf-8")
        assert f'href="{one.name}.html"' in index
        assert page.count("<pre") == 2, one.name  # a program and what it prints
        onward = page.partition('id="where-to-go-on"')[2].partition("<h2")[0]
        assert 'href="../chapters/' in onward, one.name


def test_what_answers_a_question_leads_back_to_it(built: Path) -> None:
    asked = re.compile(r'<h2[^>]* id="what-people-ask".*?</ul>', re.DOTALL)
    full = 0
    for _, one in QUESTIONS:
        page = (built / f"questions/{one.name}.html").read_text(encoding="utf-8")
        for address in set(
            re.findall(r'href="\.\./((?:chapters/\w+|explorers)/[\w-]+\.html)', page)
        ):
            text = (built / address).read_text(encoding="utf-8")
            links = re.findall(r'questions/([\w-]+)\.html"', "".join(asked.findall(text)))
            if "solutions" in address or address == "explorers/index.html":
                continue
            assert one.name in links or len(links) == 6, (one.name, address)
            full += one.name not in links
    assert full < len(QUESTIONS)
