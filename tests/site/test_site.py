"""The built site, seen by a browser: it asks no other host, logs no error, and fits a phone."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Request

from grader.authoring.myths import read_myths
from grader.authoring.reading import reading_lists
from grader.core.course import find_course

ROOT = Path(__file__).parents[2]
PHONE, DESK = 390, 1440
Scheme = Literal["light", "dark"]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Say nothing: pytest's output is for failures."""


def _build(root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of `root` as make does. Without --quiet, which would blind --strict."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built strictly, once."""
    folder = tmp_path_factory.mktemp("site")
    done = _build(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def address(built: Path) -> Iterator[str]:
    """Where a local server shows the site, with the slash at the end."""
    handler = functools.partial(_Quiet, directory=str(built))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def _pages(built: Path) -> list[str]:
    return sorted(str(page.relative_to(built)) for page in built.rglob("*.html"))


def _is_local(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in {"file", "data", "blob", "about"} or parts.hostname == "127.0.0.1"


def _complaints(browser: Browser, addresses: list[str], width: int, scheme: Scheme) -> list[str]:
    """What each address did that it should not: ask another host, log an error, stick out."""
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    # A request to elsewhere is stopped, too: the tests stay off the network.
    context.route(lambda asked: not _is_local(asked), lambda route: route.abort())
    page = context.new_page()

    def on_request(request: Request) -> None:
        if not _is_local(request.url):
            complaints.append(f"{page.url} asked for {request.url}")

    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error":
            complaints.append(f"{page.url} logged: {message.text}")

    page.on("request", on_request)
    page.on("console", on_console)
    page.on("pageerror", lambda error: complaints.append(f"{page.url} raised: {error}"))
    for address in addresses:
        page.goto(address, wait_until="networkidle")
        beyond = page.evaluate("document.documentElement.scrollWidth") - width
        if beyond > 0:
            complaints.append(f"{address} is {beyond} px wider than a window of {width} px")
    context.close()
    return complaints


@pytest.mark.parametrize("link", ["[gone](gone.md)", "[gone](index.md#gone)", "[root](/index.md)"])
def test_a_dead_link_fails_the_build(tmp_path: Path, link: str) -> None:
    for name in ("mkdocs.yml", "CHANGELOG.md", "CITATION.cff"):  # two pages show the latter
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "site", tmp_path / "site")
    with (tmp_path / "site" / "for-students.md").open("a") as page:
        page.write(f"\n{link}\n")
    done = _build(tmp_path, tmp_path / "built")
    assert done.returncode != 0
    assert "for-students.md" in done.stderr


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_pages_ask_nobody_and_fit(
    built: Path, address: str, browser: Browser, width: int, scheme: Scheme
) -> None:
    pages = _pages(built)
    assert "index.html" in pages
    assert not _complaints(browser, [address + name for name in pages], width, scheme)


def test_pages_work_from_disk(built: Path, browser: Browser) -> None:
    # 404.html is a server's page: its links begin at the server's root.
    pages = [(built / name).as_uri() for name in _pages(built) if name != "404.html"]
    assert not _complaints(browser, pages, DESK, "light")


@pytest.mark.parametrize("from_disk", [False, True], ids=["served", "from disk"])
def test_search_finds_a_page(built: Path, address: str, browser: Browser, from_disk: bool) -> None:
    page = browser.new_page(viewport={"width": DESK, "height": 844})
    home = (built / "index.html").as_uri() if from_disk else address + "index.html"
    page.goto(home, wait_until="networkidle")
    page.click("input.md-search__input")
    page.keyboard.type("evidence")
    page.wait_for_selector(".md-search-result__item a", timeout=20_000)
    page.close()


MOST_BYTES = 500_000
"""The largest page that a telephone shows without a wait. Pictures in files of their own are apart."""


def test_no_page_is_too_heavy(built: Path) -> None:
    heavy = {name: (built / name).stat().st_size for name in _pages(built)}
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
    assert not set(reading_lists(find_course(ROOT))) - known
