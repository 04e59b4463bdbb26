"""The built site, seen by a browser: strict, complete from disk, searchable. See also test_pages.py."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from playwright.sync_api import BrowserContext, expect

from grader.building.myths import read_myths
from grader.course.course import find_course
from tests import module_at, passed
from tests.browser import ROOT, Watch
from tests.conftest import build_site
from tests.site.small import copy_without_pages


def pages(built: Path) -> list[str]:
    return sorted(str(page.relative_to(built)) for page in built.rglob("*.html"))


def test_a_dead_link_fails_the_build(tmp_path: Path) -> None:
    page = copy_without_pages(tmp_path) / "index.md"
    settings = tmp_path / "small.yml"
    settings.write_text("INHERIT: mkdocs.yml\nnav: [index.md]\n")
    page.write_text("# Here\n\n[here](index.md#here)\n")
    done = build_site(settings, tmp_path / "built")
    assert done.returncode == 0, done.stderr
    with page.open("a") as file:
        file.write("\n[gone](gone.md)\n\n[gone](index.md#lost)\n\n[root](/index.md)\n")
    done = build_site(settings, tmp_path / "built")
    assert done.returncode != 0
    told = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    for link in ("'gone.md'", "'index.md#lost'", "'/index.md'"):
        assert [line for line in told if link in line], (link, done.stderr)


def test_pages_work_from_disk(built: Path, watch: Watch, pytestconfig: pytest.Config) -> None:
    """Those of them that `test_every_page` opens from a server."""
    # 404.html is a server's page: its links begin at the server's root.
    for name in passed.pages_due(built, pytestconfig):
        if name != "404.html":
            watch.page.goto((built / name).as_uri())
            assert watch.overflow() <= 0, name
            assert not watch.complaints, name


def test_an_old_address_goes_on_to_the_page_that_has_it(watch: Watch, site: str) -> None:
    page = watch.page
    page.goto(site + "chapters/ch02_strides.html#view_stride")
    page.wait_for_url("**/chapters/ch02_strides/view-rule.html#view_stride")
    page.goto(site + "chapters/ch02_strides.html")
    page.evaluate("() => { location.hash = 'sitting-copies'; }")
    page.wait_for_url("**/chapters/ch02_strides/copies.html")


def test_a_prediction_takes_a_guess_and_says_what_came_out(watch: Watch, site: str) -> None:
    page = watch.page
    page.goto(site + "chapters/ch02_strides/elements.html")
    cards = page.locator(".ut-predict")
    told = [(0, "24", "You predicted 24."), (0, "48", "48, and so it is.")]
    for card, guess, said in [*told, (4, "[3,3, 1]", "and so it is."), (4, "3, 3, 1", "so it is.")]:
        cards.nth(card).get_by_label("Your guess").fill(guess)
        cards.nth(card).get_by_role("button", name="See what comes out").click()
        expect(cards.nth(card).get_by_role("status")).to_contain_text(said)
    expect(cards.nth(0)).to_contain_text("It is 48. Measured by")
    expect(cards.nth(1)).not_to_contain_text("Measured by", use_inner_text=True)


def test_the_index_of_the_search_waits_for_a_search(watch: Watch, site: str) -> None:
    asked: list[str] = []
    watch.page.on("request", lambda request: asked.append(request.url))
    watch.page.goto(site + "glossary.html", wait_until="networkidle")
    assert not [url for url in asked if "search" in url]
    watch.page.click("input.md-search__input")
    watch.page.wait_for_function(
        "() => !document.querySelector('.md-search-result__meta').textContent.includes('Initializing')"
    )
    assert [url for url in asked if "search_index" in url]


@pytest.mark.parametrize("from_disk", [False, True], ids=["served", "from disk"])
def test_search_finds_a_page(
    built: Path, site: str, context: BrowserContext, from_disk: bool
) -> None:
    page = context.new_page()
    page.goto((built / "index.html").as_uri() if from_disk else site + "index.html")
    page.click("input.md-search__input")
    page.keyboard.type("evidence")
    page.wait_for_selector(".md-search-result__item a")
    page.close()


ASKED = {
    "view or reshape": "view-or-reshape",
    "why is my graph breaking": "why-does-my-graph-break",
    "ddp find_unused_parameters": "find-unused-parameters",
    "why is my dataloader slow": "why-is-my-dataloader-slow",
    "zero_grad set_to_none": "zero-grad-set-to-none",
    "retain_graph": "backward-a-second-time",
    "bf16 vs fp16": "bf16-or-fp16",
    "module prefix state_dict": "module-prefix-in-state-dict",
    "leaf variable in-place operation": "leaf-used-in-an-inplace-operation",
    "which operator has no kernel": "could-not-run-aten",
    "what is a graph break?": "why-does-my-graph-break",
    "what is a leaf tensor": "what-is-a-leaf",
    "what is a stride": "what-is-a-stride",
}
"""Searches, as people type them, and the page of the question that answers each."""


def test_a_search_leads_to_the_answer_in_two_clicks(built: Path, watch: Watch, site: str) -> None:
    """One on a result among the first five, and at most one on a link of its page."""
    page = watch.page
    page.goto(site + "index.html")
    page.click("input.md-search__input")
    found = {}
    for words, name in ASKED.items():
        page.fill("input.md-search__input", "")
        page.press("input.md-search__input", "End")  # the theme looks when a key is let go
        page.wait_for_selector(".md-search-result__item a", state="detached")
        page.fill("input.md-search__input", words)  # at once: no results of half a question
        page.press("input.md-search__input", "End")
        page.wait_for_selector(".md-search-result__item a")
        hits = page.locator(".md-search-result__item > a").evaluate_all(
            "(all) => all.slice(0, 5).map((a) => new URL(a.href).pathname.slice(1))"
        )
        linked = [(built / hit).read_text(encoding="utf-8") for hit in hits]
        answers = f"questions/{name}.html"
        if answers not in hits and not any(f"{name}.html" in html for html in linked):
            found[words] = hits
    assert not found


def test_no_code_of_the_build_is_published(built: Path) -> None:
    """Bytecode has the paths of the machine in it."""
    assert not [path for path in built.rglob("*") if path.suffix in {".py", ".pyc"}]


MOST_BYTES = 500_000
"""The largest page that a telephone shows without a wait. Pictures in files of their own are apart."""


def test_no_page_is_too_heavy(built: Path) -> None:
    heavy = {name: (built / name).stat().st_size for name in pages(built)}
    assert not {name: size for name, size in heavy.items() if size > MOST_BYTES}


def test_the_fonts_have_every_letter(built: Path) -> None:
    """They are cut to the characters that their rules name: a letter beyond is another font's."""
    sheet = (ROOT / "site" / "assets" / "extra.css").read_text(encoding="utf-8")
    ranges = set(re.findall("unicode-range: (.+);", sheet))
    assert len(ranges) == 1
    known: set[int] = set()
    for low, high in re.findall(r"U\+(\w+)(?:-(\w+))?", ranges.pop()):
        known |= {*range(int(low, 16), int(high or low, 16) + 1)}
    for name in pages(built):
        said = re.sub("<[^>]*>", "", (built / name).read_text(encoding="utf-8"))
        letters = {ch for ch in unescape(said) if ch.isalpha() and ord(ch) < 0x250}
        assert not [ch for ch in letters if ord(ch) not in known], name


MOVED = re.compile(r'<a class="ut-moved" href="([^"#]+)(?:#([^"]+))?" id="([^"]+)">')


def test_addresses_of_exercises_stay(built: Path) -> None:
    """A verdict, a glossary entry and a bookmark name an exercise by its id, on its chapter's page.

    There its link is, to the page that has it: with or without scripts one gets there.
    """
    for chapter in find_course(ROOT).chapters():
        html = (built / "chapters" / f"{chapter.id}.html").read_text(encoding="utf-8")
        moved = {name: (page, anchor) for page, anchor, name in MOVED.findall(html)}
        assert not [e.id for e in chapter.exercises if e.id not in moved]
        for name, (page, anchor) in moved.items():
            target = (built / "chapters" / page).read_text(encoding="utf-8")
            assert anchor == ("" if name.startswith("sitting-") else name)
            assert not anchor or f'id="{anchor}"' in target, (page, anchor)


def test_every_sitting_has_a_page_and_every_page_a_title_of_its_own(built: Path) -> None:
    titles: dict[str, str] = {}
    for name in pages(built):
        found = re.search("<title>(.*?)</title>", (built / name).read_text(encoding="utf-8"))
        assert found is not None and found[1] not in titles, (name, found)
        titles[found[1]] = name
    for chapter in find_course(ROOT).chapters():
        assert len(chapter.sittings) >= 4
        for one in chapter.sittings:
            title = f"{one.question.replace('`', '')} - Undertorch"
            assert titles[title] == f"chapters/{chapter.id}/{one.id}.html"


def test_no_link_of_the_site_leads_by_way_of_an_overview(built: Path) -> None:
    """Authors write `chapters/ch02_strides.md#reshape`; `site/book.py` knows which page has it."""
    for name in pages(built):
        html = (built / name).read_text(encoding="utf-8")
        for chapter, anchor in re.findall(
            r'href="(?:[^"]*/)?(?<!myths/)(ch\d\d_\w+)\.html#([\w-]+)"', html
        ):
            overview = (built / "chapters" / f"{chapter}.html").read_text(encoding="utf-8")
            assert anchor not in {name for _, _, name in MOVED.findall(overview)}, (name, anchor)


def test_solutions_are_for_those_who_ask(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No search shows them, no page of a chapter has them, and a site can do without."""
    for page in (built / "chapters").glob("*/*.html"):
        html = page.read_text(encoding="utf-8")
        hidden = '<meta name="robots" content="noindex">' in html
        assert hidden == (page.name == "solutions.html"), page
        assert "YOUR CODE HERE" not in html and "SOLUTION" not in html
    book = module_at(ROOT / "site" / "book.py")
    here = SimpleNamespace(file=SimpleNamespace(src_uri="a/b.md"))
    config = SimpleNamespace(docs_dir="site")
    text = "Prose.\n\n[A solution](solutions.md#reshape){ .ut-solution }\n\nMore."
    assert book.on_page_markdown(text, here, config) == text
    files = [
        SimpleNamespace(src_uri=f"chapters/ch02_strides/{n}.md") for n in ("solutions", "views")
    ]
    monkeypatch.setenv(book.SOLUTIONS, "none")
    assert "solutions" not in book.on_page_markdown(text, here, config)
    assert [file.src_uri for file in book.on_files(files, config)] == [
        "chapters/ch02_strides/views.md"
    ]


def test_the_search_leads_to_sentences(built: Path) -> None:
    """Its index has no solution, no code of a chapter, and each myth under its own anchor."""
    index = json.loads((built / "search" / "search_index.json").read_text(encoding="utf-8"))
    texts = {entry["location"]: entry["text"] for entry in index["docs"]}
    assert not [place for place in texts if "/solutions.html" in place]
    chapters = [text for place, text in texts.items() if place.startswith("chapters/")]
    assert not [text for text in chapters if "<pre" in text]
    for path in sorted((ROOT / "site" / "myths").glob("*.py")):
        where = f"myths/{path.stem}.html"
        assert not [m.name for m in read_myths(path)[1] if f"{where}#{m.name}" not in texts]


def test_nothing_heads_nothing_and_nobody_is_named(built: Path) -> None:
    for name in pages(built):
        html = (built / name).read_text(encoding="utf-8")
        assert not re.search(r"<th(?: [^>]*)?>\s*</th>|<meta name=.generator", html), name


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
    """And their old addresses, all on one page, lead on."""
    overview = (built / "myths.html").read_text(encoding="utf-8")
    for path in sorted((ROOT / "site" / "myths").glob("*.py")):
        html = (built / "myths" / f"{path.stem}.html").read_text(encoding="utf-8")
        for myth in read_myths(path)[1]:
            assert f'id="{myth.name}"' in html
            link = (
                rf'<a class="ut-moved" href="myths/{path.stem}.html#{myth.name}" id="{myth.name}"'
            )
            assert re.search(link, overview), myth.name


def test_reading_is_about_exercises() -> None:
    known = {e.id for chapter in find_course(ROOT).chapters() for e in chapter.exercises}
    listed = yaml.safe_load((ROOT / "site" / "reading.yml").read_text(encoding="utf-8"))
    assert not set(listed) - known
