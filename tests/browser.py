"""The system's Chromium for tests, headless and quiet; a server for it; a page that is watched."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Request,
    expect,
    sync_playwright,
)

ROOT = Path(__file__).parents[1]
DESK, PHONE = 1440, 390
Scheme = Literal["light", "dark"]

PATIENCE = 120_000
"""Milliseconds that a condition may take: an idle machine needs a tenth of it, a busy one all."""

expect.set_options(timeout=PATIENCE)

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Any will do. The first is Chromium without its windows, and takes half the memory."""

# Root has no Chromium sandbox; the rest keeps the browser from asking anybody by itself.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    # A word is as wide as its font says. With windows, hinting is the desktop's; without, words grow.
    "--font-render-hinting=none",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    # No request leaves the machine. Not by Playwright's routes, which switch the cache off.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Open the browser, and close it."""
    found = map(shutil.which, PROGRAMS)
    path = next(filter(None, found), None)
    assert path is not None, "Chromium is missing: make system"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Say nothing: pytest's output is for failures."""

    def do_GET(self) -> None:
        """Serve a file; a browser asks for an icon where the page names none, and that is no fault."""
        if self.path == "/favicon.ico":
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

    def handle(self) -> None:
        """Let a page be closed while it is still loading."""
        with suppress(ConnectionError):
            super().handle()


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve `folder` on this machine; gives the address, with the slash at the end."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@dataclass
class Watch:
    """A page, and what it did that it should not: ask another host, log an error, raise."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def small_buttons(self) -> list[str]:
        """The buttons in sight that a finger misses: WCAG 2.2 wants 24 px."""
        small: list[str] = self.page.locator(".ut-explorer button:visible").evaluate_all(
            """(all) => all.filter((b) => b.offsetWidth < 24 || b.offsetHeight < 24)
              .map((b) => b.textContent || b.ariaLabel)"""
        )
        return small

    def turn_to(self, width: int, scheme: Scheme) -> None:
        """Give the open page another width and palette."""
        self.page.set_viewport_size({"width": width, "height": 844})
        self.page.emulate_media(color_scheme=scheme)


@contextmanager
def watched(browser: Browser, width: int = DESK, scheme: Scheme = "light") -> Iterator[Watch]:
    """A page in a context of its own, watched from its first request."""
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    context.set_default_timeout(PATIENCE)
    with watched_page(context) as watch:
        yield watch
    context.close()


@contextmanager
def watched_page(context: BrowserContext) -> Iterator[Watch]:
    """A page of a context that others use too: what they loaded is in its cache."""
    page = context.new_page()
    with watching(page) as watch:
        yield watch
    page.close()


@contextmanager
def watching(page: Page) -> Iterator[Watch]:
    """A page that is open already, watched from here on."""
    watch = Watch(page)

    def on_request(request: Request) -> None:
        if not _is_local(request.url):
            watch.complaints.append(f"asked for {request.url}")

    def on_console(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            watch.complaints.append(f"logged: {message.text}")

    def on_error(error: Error) -> None:
        watch.complaints.append(f"raised: {error}")

    page.on("request", on_request)
    page.on("console", on_console)
    page.on("pageerror", on_error)
    yield watch
    page.remove_listener("request", on_request)
    page.remove_listener("console", on_console)
    page.remove_listener("pageerror", on_error)


def _is_local(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in {"file", "data", "blob", "about"} or parts.hostname == "127.0.0.1"
