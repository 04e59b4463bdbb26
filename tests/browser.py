"""The system's Chromium for tests: headless, and quiet on the network."""

import shutil
from contextlib import contextmanager

import pytest

FLAGS = [
    "--no-sandbox",  # tests run as root in CI
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]


@contextmanager
def chromium(playwright):
    """Give a browser; skip, and say why, where there is no Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
    try:
        yield browser
    finally:
        browser.close()
