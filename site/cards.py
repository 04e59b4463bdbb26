"""A mkdocs hook: the picture that a shared link shows, for each page one.

The system's Chromium draws them from the built site: the page's title above the explorer that
belongs to it, in its state. No request leaves the machine. Without Chromium or a Playwright that
starts, or with SITE_CARDS=plain, all pages share one picture that needs neither. Pictures are kept
in build/cards until what they show changes.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.pages import Page

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab
    from playwright.sync_api import Playwright

WIDTH, HEIGHT = 1200, 630
CHOICE = "SITE_CARDS"
STAGE = "changelog.html"
"""A page on which the cards without an explorer are drawn: it has the site's type and colours."""

LOG = get_plugin_logger("cards")

# The parts of an explorer that are its picture: those of them that show.
PICTURES = {
    "formats": ".ut-panel, .ut-line",
    "strides": "section[aria-label='Storage'], section[aria-label='View or copy']",
    "matmul": ".mm-main",
    "modules": ".mo-two",
    "autograd": ".ag-two",
    "dataloader": "section[aria-label='Timeline']",
    "compile": ".cp-two",
    "ddp": "div > section:last-child, div > section:nth-last-child(2)",
    "dispatch": ".dp-call, .dp-lanes",
    "sharding": ".sh-ranks",
    "watching": ".wt-chart",
}

LOOK = """
html { font-size: 20px; }
body { overflow: hidden; }
.share { position: fixed; inset: 0; z-index: 999; box-sizing: border-box; padding: 40px 64px 0; overflow: hidden; background: var(--ut-paper); color: var(--ut-ink); font-family: var(--ut-prose); border-top: 14px solid var(--ut-ember); }
.share .name { margin: 0; display: flex; align-items: center; gap: 14px; font: 700 26px/1 var(--ut-mono); }
.share .name img { height: 46px; }
.share h1 { margin: 20px 0; font: 640 56px/1.1 var(--ut-prose); letter-spacing: -0.02em; text-wrap: balance; }
.share h1.long { font-size: 44px; }
.share .said { margin: 40px 0 0; font-size: 36px; line-height: 1.4; color: var(--ut-soft); max-width: 1000px; text-wrap: pretty; }
.share .view { zoom: 1.4; width: 765px; }
"""

# Lays the card over the page, moves the explorer into it and leaves of that what is the picture.
DRAW = """([card, look, kind, picture]) => {
  const explorer = kind ? document.querySelector(`${kind}-explorer`) : null;
  document.head.append(Object.assign(document.createElement("style"), { textContent: look }));
  document.body.insertAdjacentHTML("beforeend", card);
  if (!explorer) return;
  const view = document.querySelector(".view");
  view.append(explorer);
  const wanted = [...explorer.querySelectorAll(picture)].filter((part) => part.checkVisibility());
  explorer.replaceChildren(...wanted);
}"""


class Card(NamedTuple):
    """What the card of a page shows; `state` is an explorer and, after a #, its state, or ""."""

    path: str
    title: str
    said: str
    state: str

    @property
    def markup(self) -> str:
        """The card's body."""
        title = escape(self.title)
        size = ' class="long"' if len(self.title) > 60 else ""
        below = '<div class="view md-typeset"></div>'
        if not self.state:
            below = f'<p class="said">{escape(self.said)}</p>'
        logo = '<p class="name"><img src="LOGO" alt="">Undertorch</p>'
        return f'<div class="share">{logo}<h1{size}>{title}</h1>{below}</div>'


CARDS: list[Card] = []


def on_pre_build(**_: object) -> None:
    """Forget the cards of the build before: `mkdocs serve` builds many times."""
    CARDS.clear()


def on_page_content(html: str, page: Page, config: MkDocsConfig, **_: object) -> None:
    """Note what the page's card shows."""
    title = page.meta.get("title") or page.title or config.site_name
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", html, re.DOTALL)
    if heading and not page.is_homepage:
        title = re.sub(r"<[^>]+>", "", re.sub(r'<a class="headerlink".*?</a>', "", heading[1]))
    said = page.meta.get("description") or config.site_description or ""
    path = (page.url or "index.html").replace(".html", ".png")
    CARDS.append(Card(path, unescape(title).strip(), said, _state(page, config)))


def _state(page: Page, config: MkDocsConfig) -> str:
    """Return the explorer that belongs to a page: the one it names, its own, or its chapter's."""
    if named := page.meta.get("explorer"):
        return str(named)
    folder, _, rest = page.file.src_uri.partition("/")
    own = re.match(r"ch\d+_(\w+)", rest)
    name = (
        Path(rest).stem if folder == "explorers" else own[1] if folder == "chapters" and own else ""
    )
    return name if (Path(config.docs_dir) / "explorers" / f"{name}.md").is_file() else ""


def on_post_build(config: MkDocsConfig) -> None:
    """Draw all cards into `cards/` of the built site."""
    site = Path(config.site_dir)
    kept = Path(config.config_file_path).parent / "build" / "cards"
    for card in CARDS:
        (site / "cards" / card.path).parent.mkdir(parents=True, exist_ok=True)
    with _tab() as tab:
        if tab is None:
            plain = plain_card(Path(config.docs_dir) / "assets" / "torch.svg")
            for card in CARDS:
                (site / "cards" / card.path).write_bytes(plain)
            return
        for card in CARDS:
            (site / "cards" / card.path).write_bytes(_drawn(tab, site, kept, card))


@contextmanager
def _tab() -> Iterator[Tab | None]:
    """A tab of the system's Chromium; None where there is none, or none is wanted."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    playwright = _started() if program and os.environ.get(CHOICE) != "plain" else None
    if playwright is None:
        LOG.info("one plain card for all pages")
        yield None
        return
    # Root has no Chromium sandbox. Letters are as wide as their font says, whatever the desktop does to
    # them. No name is looked up: nothing leaves the machine.
    flags = [
        "--no-sandbox",
        "--disable-gpu",
        "--font-render-hinting=none",
        "--host-resolver-rules=MAP * ~NOTFOUND",
    ]
    try:
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        size = {"width": WIDTH, "height": HEIGHT}
        yield browser.new_page(viewport=size, color_scheme="light", reduced_motion="reduce")
        browser.close()
    finally:
        playwright.stop()


def _started() -> Playwright | None:
    """Start Playwright; None where it is not installed, or lacks a library of the system's."""
    try:
        from playwright.sync_api import sync_playwright

        return sync_playwright().start()
    except Exception as why:  # of no class of its own
        LOG.info(f"Playwright does not start: {why}")
        return None


def _drawn(tab: Tab, site: Path, kept: Path, card: Card) -> bytes:
    """Return the picture of a card: the one that was kept, or a new one."""
    kind, _, state = card.state.partition("#")
    stage = site / ("explorers/" + kind + ".html" if kind else STAGE)
    shown = [stage] if kind else []  # what else the picture depends on
    shown += [site / "assets" / name for name in ("theme.css", "extra.css")]
    digest = hashlib.sha256(repr((card, LOOK, DRAW, PICTURES)).encode())
    for path in shown:
        digest.update(path.read_bytes())
    picture = kept / f"{digest.hexdigest()[:32]}.png"
    if not picture.is_file():
        kept.mkdir(parents=True, exist_ok=True)
        tab.goto("about:blank")  # else another state is no new page
        tab.goto(f"{stage.as_uri()}#{state}")
        markup = card.markup.replace("LOGO", (site / "assets" / "torch.svg").as_uri())
        tab.evaluate(DRAW, [markup, LOOK, kind, PICTURES.get(kind, ".ut-panel")])
        tab.evaluate("document.fonts.ready")
        part = kept / f"{picture.stem}.{os.getpid()}.part"
        part.write_bytes(tab.screenshot())
        part.replace(picture)
    return picture.read_bytes()


def plain_card(logo: Path) -> bytes:
    """Return a PNG of the logo, a drawing of squares, above the sixteen bits of a bfloat16."""
    paper, colours = (251, 249, 244), {"s": (180, 35, 90), "e": (143, 90, 0), "m": (11, 106, 124)}
    canvas = [[paper] * WIDTH for _ in range(HEIGHT)]

    def fill(x: int, y: int, width: int, height: int, colour: tuple[int, ...]) -> None:
        for row in canvas[y : y + height]:
            row[x : x + width] = [colour] * width  # type: ignore[list-item]

    square = 34
    for colour, x, y in re.findall(r'fill="#(\w{6})" d="M(\d+) (\d+)', logo.read_text("utf-8")):
        rgb = tuple(bytes.fromhex(colour))
        fill(WIDTH // 2 + (2 * int(x) - 7) * square // 2, 80 + int(y) * square, square, square, rgb)
    for bit, field in enumerate("s" + "e" * 8 + "m" * 7):
        fill(100 + bit * 63, 500, 55, 60, colours[field])
    raw = b"".join(b"\0" + bytes(part for pixel in row for part in pixel) for row in canvas)

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + crc

    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
