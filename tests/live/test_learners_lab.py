"""The JupyterLab that `undertorch learn` starts: what it shows, and that it saves by itself."""

import re
import time

import pytest

from grader.course.course import Course
from grader.student.contents import write_contents
from grader.student.fill import fill_folder
from grader.student.folder import Folder
from grader.student.lab import Place, lab, notebook
from grader.student.progress import progress
from tests import ROOT
from tests.browser import PATIENCE
from tests.jupyter import Notebook, served


@pytest.mark.alone
def test_a_learner_sees_the_chapter_and_no_tools_of_instructors(tmp_path, browser):
    course, folder = Course(ROOT), Folder(tmp_path / "my")
    fill_folder(course, folder.root)
    write_contents(course, folder, progress(course, folder))
    launch = lab(course, folder)
    environment = {**launch.environment, "UNDERTORCH_COURSE": str(ROOT)}
    home = tmp_path / "home"
    with (
        served(launch.command, tmp_path, home, environment) as address,
        browser.new_page() as page,
    ):
        page.set_default_timeout(PATIENCE)
        page.goto(f"{address}/workspaces/undertorch", wait_until="domcontentloaded")
        notebook = Notebook(page)
        page.get_by_role("tab", name="contents.md").wait_for()
        page.get_by_text("Round FP32 to BF16").first.wait_for()
        notebook.begin()
        seen = page.inner_text("body")
        for tool in ("Nbgrader", "Validate", "Jupyter news"):
            assert tool not in seen
        assert not page.locator("[title*=Assignment]").count()

        path = folder.notebook(course.chapters()[0])
        # an edit while JupyterLab saves counts as saved (its `Context._save`), and waits for the next one:
        # so this learner works on
        deadline = time.monotonic() + PATIENCE / 1000
        while "# mine" not in path.read_text():
            assert time.monotonic() < deadline
            notebook.run("def decode", "def decode(*widths):\n    return 0.0  # mine")
            page.wait_for_timeout(3000)
    # what it was told is in the student's folder; nothing of it is in the configuration of their own
    assert not list(home.rglob("page_config.json")) + list(home.rglob("overrides.d"))


@pytest.mark.alone
@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_it_opens_at_an_exercise(tmp_path, browser, app):
    """As `undertorch learn --at view_stride` does: from the address that Jupyter gives the browser."""
    course, folder = Course(ROOT), Folder(tmp_path / "my")
    fill_folder(course, folder.root)
    chapter = course.chapter("ch02_strides")
    at = Place(chapter, "view_stride")
    launch = lab(course, folder, at) if app == "lab" else notebook(folder, at)
    home = tmp_path / "home"
    with served(launch.command, tmp_path, home, launch.environment), browser.new_page() as page:
        page.set_default_timeout(PATIENCE)
        (opened,) = (home / "runtime").glob("jpserver-*-open.html")
        page.goto(
            re.findall('href="([^"]+)"', opened.read_text())[0], wait_until="domcontentloaded"
        )
        title = chapter.exercise("view_stride").title.replace("`", "")
        card = page.locator(".jp-MarkdownCell:visible", has=page.get_by_role("heading", name=title))
        notebook_panel = page.locator(".jp-Notebook:visible")
        card.first.wait_for()
        looks, deadline = 0, time.monotonic() + PATIENCE / 1000
        while looks < 6:  # it is there, and stays there
            assert time.monotonic() < deadline
            page.wait_for_timeout(500)
            top = card.first.bounding_box()["y"] - notebook_panel.bounding_box()["y"]
            looks = looks + 1 if -8 <= top < 80 else 0
