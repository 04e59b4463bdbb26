"""The built site, seen by a browser: strict, complete from disk, searchable. See also test_pages.py."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import BrowserContext

from grader.building.myths import read_myths
from grader.course.course import find_course
from tests.browser import ROOT, Watch
from tests.conftest import build_site


def pages(built: Path) -> list[str]:
    return sorted(str(page.relative_to(built)) for page in built.rglob("*.html"))


def test_a_dead_link_fails_the_build(tmp_path: Path) -> None:
    for name in ("mkdocs.yml", "CHANGELOG.md", "CITATION.cff"):  # two pages show the latter
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "site", tmp_path / "site")
    with (tmp_path / "site" / "for-students.md").open("a") as page:
        page.write("\n[gone](gone.md)\n\n[gone](index.md#lost)\n\n[root](/index.md)\n")
    done = build_site(tmp_path, tmp_path / "built")
    assert done.returncode != 0
    told = [line for line in done.stderr.splitlines() if "for-students.md" in line]
    for link in ("'gone.md'", "'index.md#lost'", "'/index.md'"):
        assert [line for line in told if link in line], (link, done.stderr)


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


MOST_BYTES = 500_000
"""The largest page that a telephone shows without a wait. Pictures in files of their own are apart."""


def test_no_page_is_too_heavy(built: Path) -> None:
    heavy = {name: (built / name).stat().st_size for name in pages(built)}
    assert not {name: size for name, size in heavy.items() if size > MOST_BYTES}


def test_addresses_of_exercises_stay(built: Path) -> None:
    """A verdict, a glossary entry and a bookmark name an exercise by its id."""
    course = find_course(ROOT)
    for chapter in course.chapters():
        html = (built / "chapters" / f"{chapter.id}.html").read_text(encoding="utf-8")
        assert not [e.id for e in chapter.exercises if f'id="{e.id}"' not in html]


def test_every_glossary_entry_says_where_to_read_on(built: Path) -> None:
    text = (ROOT / "site" / "glossary.md").read_text(encoding="utf-8")
    entries = dict(re.findall(r"^(\w.*)\n:   (.+)$", text, flags=re.MULTILINE))
    assert len(entries) > 80
    chapters = {chapter.id for chapter in find_course(ROOT).chapters()}
    alone = {word for word, said in entries.items() if "](" not in said}
    compiling = set(re.findall(r"^(\w.*)\n:", text.partition("## Compiling")[2], re.MULTILINE))
    assert not alone - (set() if "ch07_compile" in chapters else compiling)
    for name, _, anchor in (t.partition("#") for t in re.findall(r"\]\(([^)]+)\)", text)):
        html = (built / name.replace(".md", ".html")).read_text(encoding="utf-8")
        assert not anchor or f'id="{anchor}"' in html, (name, anchor)


def test_myths_begin_with_a_claim_and_end_with_output(built: Path) -> None:
    html = (built / "myths.html").read_text(encoding="utf-8")
    for path in sorted((ROOT / "site" / "myths").glob("*.py")):
        for myth in read_myths(path)[1]:
            assert f'id="{myth.anchor}"' in html


def test_reading_is_about_exercises() -> None:
    known = {e.id for chapter in find_course(ROOT).chapters() for e in chapter.exercises}
    listed = yaml.safe_load((ROOT / "site" / "reading.yml").read_text(encoding="utf-8"))
    assert not set(listed) - known
