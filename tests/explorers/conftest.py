"""One browser, one server of the sources and one built site for all tests of explorers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.explorers.harness import EXPLORERS, ROOT, Watch, serve, watched


@pytest.fixture(scope="session")
def sources() -> Iterator[str]:
    """The address of site/explorers/ as it lies in the repository."""
    with serve(EXPLORERS) as address:
        yield address


@pytest.fixture
def laboratory(browser: Browser, sources: str) -> Iterator[Page]:
    """A page beside the sources that shows nothing: for running their modules."""
    with watched(browser) as watch:
        watch.page.goto(sources + "explorer.css")
        yield watch.page
        assert not watch.complaints


@pytest.fixture
def watch(browser: Browser) -> Iterator[Watch]:
    """A page at a desk, in light, that must not complain."""
    with watched(browser) as watch:
        yield watch
        assert not watch.complaints


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def site(built: Path) -> Iterator[str]:
    """The address of the built site."""
    with serve(built) as address:
        yield address
