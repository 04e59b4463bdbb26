"""Small views in the built pages: they come when they are scrolled to, into the room that was kept.

What they show is compared with torch in tests/explorers/test_views.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import passed
from tests.browser import DESK, PHONE, Watch
from tests.passed import EXPLORERS
from tests.site.test_pages import AXE, MARK, RUN

STAGE = re.compile(r'class="ut-stage" data-explorer="(\w+)"')


def shown_on(built: Path) -> dict[str, Path]:
    """Of each explorer, the page that shows the most views of it."""
    found: dict[str, tuple[int, Path]] = {}
    for page in sorted((built / "chapters").glob("*/*.html")):
        kinds = STAGE.findall(page.read_text(encoding="utf-8"))
        for kind in set(kinds):
            count = kinds.count(kind)
            if count > found.get(kind, (0, page))[0]:
                found[kind] = (count, page)
    return {kind: page for kind, (_, page) in found.items()}


# Scrolls from view to view as a reader does, and looks at each: was its room kept, can fingers use it,
# can eyes read it? A few pixels depend on fonts, and room that is left over moves nothing.
VISIT = """async (phone) => {
  const frame = () => new Promise(requestAnimationFrame);
  const wrong = [];
  for (const stage of document.querySelectorAll(".ut-stage")) {
    const name = stage.dataset.explorer + "/" + stage.dataset.part;
    const kept = stage.getBoundingClientRect().height;
    stage.scrollIntoView();
    for (let i = 0; i < 600 && !stage.querySelector(".ut-explorer > .ut-unseen:last-child"); i += 1) await frame();
    await document.fonts.ready;
    await frame(); await frame();
    const view = stage.firstElementChild;
    if (!view) { wrong.push(`${name}: not there`); continue; }
    const { height } = view.getBoundingClientRect();
    if (height - kept > 12) wrong.push(`${name}: ${kept} px were kept for ${height}`);
    if (view.querySelectorAll("button, input, textarea, [tabindex='0']").length === 0) wrong.push(`${name}: nothing to do`);
    if (!phone) continue;
    for (const e of view.querySelectorAll("button, label:has(input), [role=slider], select, input[type=text], textarea")) {
      const { width, height: tall } = e.getBoundingClientRect();
      const dense = e.matches(".ut-bit, .ut-grids button, .ut-strip button, .dl-box button");
      if (width && e.tabIndex !== -1 && e.checkVisibility() && (tall < (dense ? 24 : 43.5) || width < 24)) wrong.push(`${name}: a finger misses ${width.toFixed()} x ${tall.toFixed()}: ${(e.textContent || e.className).slice(0, 40)}`);
    }
    for (const e of view.querySelectorAll("*")) {
      const text = [...e.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
      if (text && e.checkVisibility() && !e.closest(".ut-unseen, sup, sub") && parseFloat(getComputedStyle(e).fontSize) < 11.99) wrong.push(`${name}: ${getComputedStyle(e).fontSize}: ${e.textContent.slice(0, 30)}`);
    }
  }
  return [...new Set(wrong)].slice(0, 12);
}"""


TWICE = """() => {
  const ids = [...document.querySelectorAll("[id]")].map(({ id }) => id);
  return ids.filter((id, at) => ids.indexOf(id) !== at);
}"""
IN_SIGHT = "document.querySelector('.ut-stage').getBoundingClientRect().top < innerHeight"


def test_a_view_comes_when_it_is_scrolled_to(
    watch: Watch, site: str, built: Path, pytestconfig: pytest.Config
) -> None:
    """Of each explorer on one page, where the explorer or that page has changed or has its turn."""
    asked: list[str] = []
    watch.page.on("request", lambda request: asked.append(request.url))
    pages = shown_on(built)
    assert set(pages) == set(EXPLORERS)
    explorers = passed.explorers_due(pytestconfig)
    due = set(passed.pages_due(built, pytestconfig))
    looked_at = [
        (kind, path)
        for kind, path in pages.items()
        if kind in explorers or path.relative_to(built).as_posix() in due
    ]
    for width, scheme in ((PHONE, "light"), (DESK, "dark")):
        for kind, path in looked_at:
            asked.clear()
            watch.turn_to(width, scheme)
            watch.page.goto(site + path.relative_to(built).as_posix(), wait_until="networkidle")
            in_sight = watch.page.evaluate(IN_SIGHT)
            assert in_sight or not [url for url in asked if "bundle.js" in url], path
            assert not watch.page.evaluate(VISIT, width == PHONE), path
            assert [url for url in asked if f"{kind}/bundle.js" in url], path
            assert watch.overflow() <= 0, path
            watch.page.evaluate(AXE)
            assert watch.page.evaluate(MARK) > 1
            assert not watch.page.evaluate(RUN, {}), path


def test_a_view_answers_leads_on_and_begins_again(watch: Watch, built: Path) -> None:
    """From disk, too: no module can be loaded there."""
    page = watch.page
    page.goto((built / "chapters/ch05_autograd/recording.html").as_uri())
    assert not page.evaluate(VISIT, False)
    page.get_by_role("button", name="Start again", include_hidden=True).first.evaluate(
        "(button) => button.click()"
    )
    assert not page.evaluate(TWICE), "an element's name is its own, also when a view began again"
    page.goto((built / "chapters/ch02_strides/copies.html").as_uri())
    view = page.locator(".ut-view").first
    view.scroll_into_view_if_needed()
    view.get_by_role("button", name="transpose").click()
    link = view.get_by_role("link", name="Open it in the explorer")
    assert "step=1" in (link.get_attribute("href") or "")
    assert page.url.endswith("copies.html"), "the page's address is its own"
    view.get_by_role("button", name="Start again").click()
    assert "step=1" not in (link.get_attribute("href") or "")
    link.click()
    page.wait_for_selector("strides-explorer .ut-history [aria-current]")
    assert "reshape" in page.locator(".ut-history [aria-current]").inner_text()
