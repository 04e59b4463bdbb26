"""The home page: what fails is there at once and can be played with, and nobody typed its numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.building.questions import FOLDER
from grader.course.course import find_course
from tests.browser import DESK, PHONE, ROOT, Watch
from tests.explorers.harness import EXPLORERS

WINDOWS = {"desk": (DESK, 900), "phone": (PHONE, 844)}
NUMBER = re.compile(r"<b>([\d,]+)</b> (\w+)")


def test_its_numbers_are_the_course_s(built: Path) -> None:
    """Counted in other places than the page counts them."""
    page = (built / "index.html").read_text(encoding="utf-8")
    said = {word: int(number.replace(",", "")) for number, word in NUMBER.findall(page)}
    rows = re.findall(r"^\| \*\*all\*\* .*", (ROOT / "site/trial.md").read_text("utf-8"), re.M)
    trial = [[int(cell) for cell in row.split("|")[2:-1]] for row in rows]
    mistakes, killed = (sum(row[at] for row in trial) for at in (2, 5))
    exercises = sum(len(chapter.exercises) for chapter in find_course(ROOT).chapters())
    myths = (built / "myths.html").read_text(encoding="utf-8").count('class="ut-moved"')
    questions = sum(path.stem != "index" for path in (ROOT / FOLDER).glob("*.md"))
    wanted = {"exercises": exercises, "known": mistakes, "mutants": killed, "myths": myths}
    assert said == wanted | {"questions": questions}


def test_every_explorer_has_its_picture(built: Path) -> None:
    every = {path.parent.name for path in EXPLORERS.glob("*/*.css")}
    for name, prefix in (("index.html", "explorers/"), ("explorers/index.html", "")):
        page = (built / name).read_text(encoding="utf-8")
        assert page.count('class="art"') == len(every)
        assert {n for n in every if f'href="{prefix}{n}.html"' in page} == every


@pytest.mark.parametrize("window", WINDOWS)
def test_what_fails_is_in_the_first_screen_and_answers(
    watch: Watch, site: str, window: str
) -> None:
    page = watch.page
    width, height = WINDOWS[window]
    page.set_viewport_size({"width": width, "height": height})
    page.goto(site + "index.html")
    view = page.locator(".play")
    answer, cells = view.locator(".ut-answer"), view.locator(".ut-hops")
    answer.filter(has_text="No view.").wait_for()
    before = cells.inner_html()
    for part in (answer, view.locator(".ut-history"), view.locator(".asks")):
        box = part.bounding_box()
        assert box and box["y"] + box["height"] <= height
    top = cells.bounding_box()
    assert top and top["y"] < height, "what moves is in sight"
    view.get_by_role("button", name="2, 2, 3").click()
    answer.filter(has_text="A view.").wait_for()
    view.get_by_role("button", name="12", exact=True).click()
    answer.filter(has_text="No view.").wait_for()
    view.get_by_role("button", name="x size (3, 4)").click()
    answer.filter(has_text="A view.").wait_for()
    assert cells.inner_html() != before
    assert "step=0" in (view.get_by_role("link").last.get_attribute("href") or "")
    view.get_by_role("button", name="Start again").click()
    answer.filter(has_text="No view.").wait_for()
    assert page.url == site + "index.html" and not watch.complaints
