"""A student in Notebook 7, in a real browser: its page is another than JupyterLab's."""

import pytest

from grader.building.sample import answers_of
from grader.course.answers import Role
from grader.course.course import Course
from grader.student import lab
from grader.student.fill import fill_folder
from grader.student.folder import Folder
from tests import ROOT
from tests.browser import DESK, PATIENCE, PHONE
from tests.jupyter import Notebook, served

COURSE = Course(ROOT)
CHAPTER = COURSE.chapter("ch01_formats")
LUMINANCE = """(element) => {
  const [r, g, b] = getComputedStyle(element).backgroundColor.match(/\\d+/g).map(Number);
  return (r + g + b) / 3;
}"""
"""0 to 255: how light an element's background is."""


@pytest.fixture
def notebook(tmp_path, browser):
    """A student's fresh chapter 1, open."""
    fill_folder(COURSE, tmp_path / "my")
    launch = lab.notebook(Folder(tmp_path / "my"))
    environment = {**launch.environment, "UNDERTORCH_COURSE": str(ROOT)}
    with (
        served(launch.command, tmp_path / "my", tmp_path / "home", environment) as address,
        browser.new_page() as page,
    ):
        page.set_default_timeout(PATIENCE)
        folder = address.removesuffix("tree") + f"notebooks/{CHAPTER.id}"
        page.goto(f"{folder}/{CHAPTER.name}.ipynb", wait_until="domcontentloaded")
        yield Notebook(page)


def choose_dark(page):
    """Choose the dark theme as a student does."""
    page.get_by_role("menuitem", name="Settings").click()
    page.locator(".lm-Menu-item", has_text="Theme").first.hover()
    page.locator(".lm-Menu-item", has_text="JupyterLab Dark").first.click()
    page.locator("body[data-jp-theme-light=false]").wait_for(state="attached")


@pytest.mark.alone
def test_a_verdict_is_readable_on_a_desk_and_a_phone_in_either_theme(notebook):
    notebook.begin()
    assert "Nbgrader" not in notebook.page.inner_text("#menu-panel")
    notebook.run("def round_to_bf16", answers_of(CHAPTER, Role.MISTAKE)["round_to_bf16"])
    verdict = notebook.run('grade("round_to_bf16")').locator(".ut")
    verdict.filter(has_text="You dropped the lower sixteen bits").wait_for()
    assert verdict.evaluate(LUMINANCE) > 200
    notebook.page.set_viewport_size({"width": DESK, "height": 844})
    choose_dark(notebook.page)
    assert verdict.evaluate(LUMINANCE) < 60
    for width in (DESK, PHONE):
        notebook.page.set_viewport_size({"width": width, "height": 844})
        notebook.page.wait_for_function("(w) => innerWidth === w", arg=width)
        assert verdict.evaluate("(e) => e.scrollWidth <= e.clientWidth")
        box = verdict.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
