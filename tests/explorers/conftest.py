"""A server of the sources, and a page to run their modules in. The built site is in tests/conftest.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.browser import Watch, serve
from tests.explorers.harness import EXPLORERS


@pytest.fixture(scope="session")
def sources() -> Iterator[str]:
    """The address of site/explorers/ as it lies in the repository."""
    with serve(EXPLORERS) as address:
        yield address


@pytest.fixture
def laboratory(watch: Watch, sources: str) -> Page:
    """A page beside the sources that shows nothing: for running their modules."""
    watch.page.goto(sources + "explorer.css")
    return watch.page
