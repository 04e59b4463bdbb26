"""The built site, seen by a browser: strict, complete from disk, searchable. See also test_pages.py."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

from tests.browser import ROOT, Watch
from tests.conftest import build_site


def pages(built: Path) -> list[str]:
    return sorted(str(page.relative_to(built)) for page in built.rglob("*.html"))


@pytest.mark.parametrize("link", ["[gone](gone.md)", "[gone](index.md#gone)", "[root](/index.md)"])
def test_a_dead_link_fails_the_build(tmp_path: Path, link: str) -> None:
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    shutil.copytree(ROOT / "site", tmp_path / "site")
    with (tmp_path / "site" / "for-students.md").open("a") as page:
        page.write(f"\n{link}\n")
    done = build_site(tmp_path, tmp_path / "built")
    assert done.returncode != 0
    assert "for-students.md" in done.stderr


def test_pages_work_from_disk(built: Path, watch: Watch) -> None:
    # 404.html is a server's page: its links begin at the server's root.
    for name in pages(built):
        if name != "404.html":
            watch.page.goto((built / name).as_uri())
            assert watch.overflow() <= 0, name
            assert not watch.complaints, name


@pytest.mark.parametrize("from_disk", [False, True], ids=["served", "from disk"])
def test_search_finds_a_page(
    built: Path, site: str, context: BrowserContext, from_disk: bool
) -> None:
    page = context.new_page()
    page.goto((built / "index.html").as_uri() if from_disk else site + "index.html")
    page.click("input.md-search__input")
    page.keyboard.type("evidence")
    page.wait_for_selector(".md-search-result__item a", timeout=20_000)
    page.close()
