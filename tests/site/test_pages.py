"""Every page and explorer as somebody meets it: on a phone and a desk, in light and in dark.

No error in the console, no request to elsewhere, nothing wider than the window, nothing that axe-core
finds, and every control of an explorer by keyboard, with a focus to be seen.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests import passed
from tests.browser import DESK, PHONE, ROOT, Scheme, Watch, watched_page

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")
EXPLORERS = sorted(path.parent.name for path in (ROOT / "site/explorers").glob("*/*.css"))
VIEWS: tuple[tuple[int, Scheme, dict[str, object]], ...] = (
    (PHONE, "light", {}),
    (DESK, "dark", {"runOnly": ["color-contrast"]}),
)
"""Layout does not depend on the palette, nor colour on the width: two views are all there is. Names, roles
and structure depend on neither: axe looks for them in one."""

# A chapter has thousands of words in a handful of looks, and the contrast of a word depends on its
# look alone. So axe measures one of each: the same colours, size, weight and opacity above all
# that is opaque.
MARK = """() => {
  for (const animation of document.getAnimations()) try { animation.finish(); } catch { animation.cancel(); }
  const grounds = new Map();
  const ground = (element) => {
    if (!element) return "";
    if (!grounds.has(element)) {
      const style = getComputedStyle(element);
      const own = `${style.backgroundColor} ${style.backgroundImage} ${style.opacity} ${style.filter}`;
      const opaque = /^rgb\\(/.test(style.backgroundColor) && style.opacity === "1";
      grounds.set(element, opaque ? own : `${own} over ${ground(element.parentElement)}`);
    }
    return grounds.get(element);
  };
  const looks = new Set();
  for (const element of document.querySelectorAll("body *")) {
    element.removeAttribute("data-look");
    const named = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) || element.matches("input, textarea, select");
    if (!named || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const look = [style.color, style.fontSize, style.fontWeight, style.textShadow, ground(element)].join();
    if (looks.has(look)) continue;
    looks.add(look);
    element.setAttribute("data-look", "");
  }
  return looks.size;
}"""
# A formula is MathML for those who listen, where axe looks for no text.
RUN = """async (rules) => {
  axe.configure({ rules: [
    { id: "color-contrast", selector: "[data-look]" },
    { id: "empty-table-header", selector: "th:not(:has(math))" },
  ] });
  const { violations } = await axe.run(document, { resultTypes: ["violations"], preload: false, ...rules });
  return violations.flatMap(({ id, nodes }) =>
    nodes.slice(0, 3).map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`));
}"""


# What axe does not see. The title of the contents stays while they are scrolled, so it must be opaque.
# What is cut off must fade where it goes on; on a desk, that is for few lines of code. A column that is
# a word wide is no column. And a sitting's page is twelve screens of 900 px long, or little more; of those
# at most two follow each other without a view, a drawing or a table.
LAYOUT = """(desk) => {
  const wrong = [];
  for (const title of document.querySelectorAll(".md-nav--secondary > .md-nav__title")) {
    if (title.checkVisibility() && !/^rgb\\(/.test(getComputedStyle(title).backgroundColor)) wrong.push("contents show through their title");
  }
  const cut = [...document.querySelectorAll(".md-typeset pre > code, .ut-out")].filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth + 2);
  for (const e of cut) if (e.scrollLeft === 0 && getComputedStyle(e).maskImage === "none") wrong.push(`cut off without a fade: ${e.textContent.slice(0, 60)}`);
  const blocks = document.querySelectorAll(".md-typeset pre > code").length;
  if (desk && cut.length > Math.max(4, blocks / 8)) wrong.push(`${cut.length} of ${blocks} blocks of code are cut off`);
  for (const cell of document.querySelectorAll(".md-typeset td")) {
    if (cell.clientWidth && cell.clientWidth < 80 && cell.clientHeight > 160 && cell.textContent.length > 24) wrong.push(`a column of ${cell.clientWidth} px: ${cell.textContent.slice(0, 60)}`);
  }
  const screens = document.querySelector(".md-content").offsetHeight / 900;
  if (desk && document.querySelector(".md-content__inner > .ut-answer")) {
    if (screens > 12.5) wrong.push(`${screens.toFixed(1)} screens`);
    const { top, bottom } = document.querySelector(".md-content__inner").getBoundingClientRect();
    let [seen, longest] = [top, 0];
    for (const e of document.querySelectorAll(".ut-view, .ut-still, .md-typeset svg, .md-typeset img, .md-typeset table:not(.highlighttable)")) {
      const { top: from, bottom: to, height } = e.getBoundingClientRect();
      if (height < 60) continue;
      longest = Math.max(longest, from - seen);
      seen = Math.max(seen, to);
    }
    longest = Math.max(longest, bottom - seen) / 900;
    if (longest > 2) wrong.push(`nothing to look at for ${longest.toFixed(2)} screens`);
  }
  return wrong.slice(0, 5);
}"""


@pytest.fixture(scope="module")
def viewer(context: BrowserContext) -> Iterator[Watch]:
    """One page for the whole module: it knows fonts and scripts already."""
    with watched_page(context) as watch:
        yield watch


def complaints(watch: Watch) -> list[str]:
    """What is wrong with the open page in both views."""
    found: list[str] = []
    for width, scheme, rules in VIEWS:
        watch.turn_to(width, scheme)
        palette = {"light": "default", "dark": "slate"}[scheme]
        expect(watch.page.locator("body")).to_have_attribute("data-md-color-scheme", palette)
        if (beyond := watch.overflow()) > 0:
            found.append(f"{beyond} px wider than a window of {width}")
        found += [f"{width}: {said}" for said in watch.page.evaluate(LAYOUT, width == DESK)]
        assert watch.page.evaluate(MARK) > 1
        found += [f"{width} {scheme}: {said}" for said in watch.page.evaluate(RUN, rules)]
    found += watch.complaints
    watch.complaints.clear()
    return found


def open_page(watch: Watch, address: str) -> None:
    watch.page.goto("about:blank")
    watch.page.goto(address)
    watch.page.evaluate(AXE)


MOST_TRAVELLED = {False: 150_000, True: 300_000}
"""Bytes, compressed, that the first view of a page asks for: without and with an explorer on it."""


def travelled(built: Path, site: str, asked: set[str]) -> int:
    """Return how many bytes travel for these addresses, where the server compresses."""
    files = [
        built / unquote(urlsplit(url).path).lstrip("/") for url in asked if url.startswith(site)
    ]
    packed = {".woff2", ".png"}  # already
    return sum(
        len(data if path.suffix in packed else gzip.compress(data))
        for path, data in ((path, path.read_bytes()) for path in files if path.is_file())
    )


def test_every_page(viewer: Watch, built: Path, site: str, pytestconfig: pytest.Config) -> None:
    """Where nothing changed, a tenth of the pages has its turn."""
    asked: set[str] = set()
    viewer.page.on("request", lambda request: asked.add(request.url))
    digests = passed.page_digests(built)
    assert {"index.html", "404.html", *(f"explorers/{name}.html" for name in EXPLORERS)} <= {
        *digests
    }
    found = {}
    for name in passed.pages_due(built, pytestconfig):
        asked.clear()
        open_page(viewer, site + name)
        if viewer.page.locator(".home").count():  # its small view is in the first screen
            viewer.page.locator(".ut-answer").wait_for()
        weight = travelled(built, site, asked)
        assert weight > 80_000, (name, asked)  # else the count misses something
        found[name] = complaints(viewer)
        explores = viewer.page.locator(".ut-explorer").count() > 0
        if weight > MOST_TRAVELLED[explores]:
            found[name].append(f"{weight} bytes travel")
    assert not {name: said for name, said in found.items() if said}
    if pytestconfig.getoption(passed.OPTION):
        passed.write("pages", digests)


@pytest.mark.parametrize("name", EXPLORERS)
def test_every_state_of_the_gallery(viewer: Watch, site: str, name: str) -> None:
    """What an explorer draws differs from state to state: see those that its own page set out."""
    gallery = (ROOT / "site/explorers/index.md").read_text(encoding="utf-8")
    states = [
        link.replace("&amp;", "&") for link in re.findall(rf'"{name}\.html#([^"]+)"', gallery)
    ]
    assert len(states) >= 3
    open_page(viewer, f"{site}explorers/{name}.html")
    for state in states:
        viewer.page.evaluate("(hash) => { location.hash = hash; }", state)
        assert not complaints(viewer), state


def test_an_explorer_looks_alike_wherever_it_stands(viewer: Watch, site: str) -> None:
    """The home page styles its own sections, and an explorer's panels are sections too."""
    paddings = set()
    for name in ("index.html", "chapters/ch02_strides/view-rule.html"):
        viewer.page.goto(site + name)
        viewer.page.locator(".ut-stage").first.scroll_into_view_if_needed()
        panels = viewer.page.locator(".ut-panel:visible")
        panels.first.wait_for()
        paddings |= set(panels.evaluate_all("(all) => all.map((e) => getComputedStyle(e).padding)"))
    assert len(paddings) == 1


STOPS = """(explorer) => {
  const all = [...explorer.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
    .filter((e) => e.checkVisibility() && !e.disabled && e.tabIndex >= 0);
  const groups = new Map();
  for (const e of all) if (e.type === "radio") groups.set(e.name, [...groups.get(e.name) ?? [], e]);
  const radios = [...groups.values()].map((group) => group.find((e) => e.checked) ?? group[0]);
  const stops = all.filter((e) => e.type !== "radio" || radios.includes(e));
  stops.forEach((e, i) => { e.dataset.stop = i; });
  return stops.map((e) => e.outerHTML.slice(0, 120));
}"""
FOCUS = """() => {
  const here = document.activeElement;
  const outlined = (e) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(e);
    return outlineStyle !== "none" && parseFloat(outlineWidth) >= 1;
  };
  const shown = [here, here.closest("label"), here.parentElement];
  return {
    inside: Boolean(here.closest(".ut-explorer")), stop: here.dataset.stop ?? null,
    seen: shown.some((e) => e && outlined(e)), who: here.outerHTML.slice(0, 120),
  };
}"""


@pytest.mark.parametrize("name", EXPLORERS)
def test_the_keyboard_alone_reaches_every_control(
    context: BrowserContext, site: str, name: str
) -> None:
    with watched_page(context) as watch:
        page = watch.page
        page.goto(f"{site}explorers/{name}.html")
        explorer = page.locator(".ut-explorer")
        stops = explorer.evaluate(STOPS)
        reached = _tab_through(page)
        missed = [text for number, text in enumerate(stops) if str(number) not in reached]
        assert not missed
        _assert_arrows_move(page)
        assert not watch.complaints


def _tab_through(page: Page) -> set[str]:
    """Tab from the explorer's beginning to its end; the focus is always to be seen."""
    page.evaluate(
        """() => {
          const before = document.createElement("span");
          before.tabIndex = -1;
          document.querySelector(".ut-explorer").before(before);
          before.focus();
        }"""
    )
    reached: set[str] = set()
    for _ in range(200):
        page.keyboard.press("Tab")
        focus = page.evaluate(FOCUS)
        if not focus["inside"]:
            return reached
        assert focus["seen"], f"no focus to be seen: {focus['who']}"
        reached.add(focus["stop"])
    raise AssertionError("Tab does not leave the explorer")


def _assert_arrows_move(page: Page) -> None:
    """Where one stop of Tab stands for many buttons, arrow keys lead to the others."""
    many = page.locator(".ut-explorer :has(> [tabindex='-1']) > [tabindex='0']:visible")
    for stop in many.element_handles():
        stop.focus()
        for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
            page.keyboard.press(key)
            if not stop.evaluate("(e) => e === document.activeElement"):
                break
        else:
            raise AssertionError(f"arrows move nothing: {stop.evaluate('(e) => e.outerHTML')}")
