"""What all tests share: one browser a process, and files that stay on one of pytest-xdist's workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser import chromium


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep a file's tests together, so that a warm box or a built site is made once.

    Tests that say themselves where they belong (`xdist_group`) do.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.location[0]))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium, without a window. A second Playwright in a process does not start."""
    with chromium() as opened:
        yield opened
