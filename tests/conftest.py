"""What all tests share: one browser a process, one built site, and files that stay on one of pytest-xdist's workers."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from filelock import FileLock
from playwright.sync_api import Browser, BrowserContext, Page

from tests import passed
from tests.account import Account
from tests.browser import DESK, PATIENCE, ROOT, Watch, chromium, serve, watching

NAME_LENGTH = 60
"""Characters of a parameter that a test's name takes in."""

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("undertorch", deadline=None)
hypothesis.settings.load_profile("undertorch")

LONG = (
    "tests/scale/test_cluster.py",
    "tests/attacks/test_attacks.py",
    "tests/live/test_safe_kernel.py",
    "tests/live/test_run_all.py",
    "tests/scale/test_interrupt.py",
    "tests/site/test_site.py",
    "tests/proving/test_course.py",
    "tests/site/",
    "tests/explorers/",
    "tests/instructor/",
    "tests/student/",
    "tests/scale/",
    "tests/building/",
    "tests/nbgrader/",
)
"""What takes long, the longest first: so begun, the workers end at the same time. One file of the site's
has it built, while others do something else: two that begin with it would both wait."""


def pytest_configure(config: pytest.Config) -> None:
    """Let the process that prints the summary keep account; workers only send their reports."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Account())
        if config.getoption(passed.OPTION):
            config.pluginmanager.register(passed.Record())


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make prove` run all costly tests, and put down that they passed."""
    what = "run all costly tests and no others; put down in tests/passed/ which of them pass"
    parser.addoption(passed.OPTION, action="store_true", help=what)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out costly tests of what is as it was, and keep a file's tests together.

    So a warm box or a built site is made once. Tests that say themselves where they belong
    (`xdist_group`) do.
    """
    left_out = set(passed.left_out(items, config))
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))
    items.sort(key=_turn)
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.location[0]))


def pytest_collection_finish() -> None:
    """Spare all collections of garbage, those in forks above all, a million objects that stay."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Leave no file of tests in another folder: which course the next one means depends on it."""
    yield
    start = item.config.invocation_params.dir
    if (nextitem is None or nextitem.path != item.path) and Path.cwd() != start:
        there = Path.cwd()
        os.chdir(start)
        pytest.fail(f"{item.location[0]} left this process in {there}")


def _turn(item: pytest.Item) -> int:
    name = item.location[0]
    return next((place for place, long in enumerate(LONG) if name.startswith(long)), len(LONG))


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a test by the beginning of a long text: pytest hands names on in the environment."""
    if isinstance(val, str | bytes) and len(val) > NAME_LENGTH:
        return f"{val[:NAME_LENGTH]!r}…"
    return None


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium, without a window. A second Playwright in a process does not start."""
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """Where `watch` opens its pages: at a desk, in light, with one cache for all."""
    context = browser.new_context(viewport={"width": DESK, "height": 844}, color_scheme="light")
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


@pytest.fixture(scope="session")
def shared_page(context: BrowserContext) -> Iterator[Page]:
    """The page of all tests of a process: a new one costs three times as much as another address."""
    page = context.new_page()
    yield page
    page.close()


@pytest.fixture
def watch(shared_page: Page) -> Iterator[Watch]:
    """A blank page that must not complain."""
    page = shared_page
    page.unroute_all()
    page.goto("about:blank")
    page.set_viewport_size({"width": DESK, "height": 844})
    page.emulate_media(color_scheme="light")
    with watching(page) as watch:
        yield watch
        assert not watch.complaints


def build_site(settings: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of these settings as make does, with one card for all pages. Without --quiet, which would blind --strict."""
    given = ["--config-file", settings.name, "--strict", "--site-dir", str(folder)]
    command = [sys.executable, "-m", "mkdocs", "build", *given]
    env = os.environ | {"SITE_CARDS": "plain"}
    return subprocess.run(
        command, cwd=settings.parent, env=env, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site: built once, by whichever worker of the run asks first."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with FileLock(shared / "site.lock"):
        if not (shared / "site").is_dir():
            done = build_site(ROOT / "mkdocs.yml", shared / "building")
            assert done.returncode == 0, done.stdout + done.stderr
            (shared / "building").rename(shared / "site")
    return shared / "site"


@pytest.fixture(scope="session")
def site(built: Path) -> Iterator[str]:
    """The address of the built site."""
    with serve(built) as address:
        yield address
