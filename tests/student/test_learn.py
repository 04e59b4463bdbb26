"""`undertorch learn`: the folder, the page of progress, and how JupyterLab is laid out."""

import json
import os
from pathlib import Path

from grader.course.course import Course
from grader.student.folder import Folder
from grader.student.journal import STATE
from grader.student.lab import Launch, Place, lab, notebook
from grader.student.targets import find_place
from tests.scale.course import CHAPTER, RIGHT


def test_a_fresh_folder(student, tiny):
    said = student.run("learn", "fresh", "--no-open")
    notebook = student.home / "fresh" / CHAPTER / f"{CHAPTER}.ipynb"
    assert said.split() == ["new:", f"fresh/{CHAPTER}/{CHAPTER}.ipynb"]
    assert notebook.read_bytes() == Course(tiny.root).chapter(CHAPTER).released.read_bytes()
    assert student.run("learn", "fresh", "--no-open") == ""


def test_nothing_is_overwritten(student):
    student.answers(**RIGHT)
    (student.my / "contents.md").write_text("mine")
    before = student.notebook.read_bytes()
    student.run("learn", "--no-open")
    student.run("progress")
    assert student.notebook.read_bytes() == before
    assert (student.my / "contents.md").read_text() == "mine"


def test_jupyter_gets_its_own_options(student, monkeypatch):
    started = []
    monkeypatch.setattr(Launch, "run", lambda self, *options: started.append(options) or 0)
    student.run("learn", "--jupyter=--no-browser", "--jupyter=--port=9000")
    assert started == [("--no-browser", "--port=9000")]


def test_the_page_follows(student):
    student.run("learn", "--no-open")
    page = student.my / "contents.md"
    assert f"[Tiny]({CHAPTER}/{CHAPTER}.ipynb)" in page.read_text()
    assert "0 of 2 exercises passed, 0 of 6 points." in page.read_text()
    student.answers(double=RIGHT["double"])
    student.run("check", "double")
    student.run("progress")
    double = f"[Double]({CHAPTER}/{CHAPTER}.ipynb#cell-id=double-card)"
    assert f"| {double} | 1 | ●○○○○ | **passed** | 4 of 4 |" in page.read_text()


def test_the_first_time_laid_out_then_as_it_was_left(student, tiny):
    course, folder = Course(tiny.root), Folder(student.my)
    launch = lab(course, folder)
    assert launch.command[-1].endswith("/lab/workspaces/undertorch")
    (path,) = (student.my / STATE / "workspaces").iterdir()
    layout = json.loads(path.read_text())["data"]["layout-restorer:data"]
    assert layout["main"]["current"] == f"notebook:{CHAPTER}/{CHAPTER}.ipynb"
    path.write_text(path.read_text().replace("false", "true"))
    left = path.read_text()
    assert lab(course, folder) == launch
    assert path.read_text() == left


def test_it_opens_at_a_chapter_or_an_exercise(student, tiny):
    course, folder = Course(tiny.root), Folder(student.my)
    chapter = course.chapter(CHAPTER)
    path = f"{CHAPTER}/{CHAPTER}.ipynb"
    for place, end in [
        (Place(chapter), path),
        (Place(chapter, "double"), f"{path}#cell-id=double-card"),
    ]:
        assert (
            lab(course, folder, place)
            .command[-1]
            .endswith(f"/lab/workspaces/undertorch/tree/{end}")
        )
        assert notebook(folder, place).command[-1].endswith(f"=/notebooks/{end}")
    here = Path.cwd()
    try:
        os.chdir(student.home)
        mine = Path(student.my.name)
        assert find_place(course, "", "") == (Path("my"), None)
        assert find_place(course, "other", "double") == (Path("other"), Place(chapter, "double"))
        assert find_place(course, CHAPTER, "") == (mine, Place(chapter))
        assert find_place(course, CHAPTER, "double") == (mine, Place(chapter, "double"))
        assert find_place(course, "", "double") == (mine, Place(chapter, "double"))
    finally:
        os.chdir(here)


def test_where_there_is_nothing_it_says_what_is_near(student):
    assert "Did you mean double?" in student.run("learn", "--at", "duoble", "--no-open", status=2)
    assert "is called 'ch77'" in student.run("learn", "ch77", "--no-open", status=2)


def test_a_folder_that_cannot_be_made(student):
    (student.home / "taken").write_text("a file")
    assert "taken cannot be used" in student.run("learn", "taken", "--no-open", status=2)
