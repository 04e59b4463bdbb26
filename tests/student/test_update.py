"""`undertorch update` on files: a new version comes in, whatever state the student's copy is in."""

import json

import nbformat
import pytest

from grader.course.course import Course
from grader.student import update as updating
from grader.student import versions
from grader.student.journal import STATE
from tests.scale.course import CHAPTER, DOUBLE, HALF, RIGHT, TinyCourse

NEWS = "The course has news."
STUB = 'def total(x: torch.Tensor) -> float:\n    """Return the sum of all of `x`."""'


@pytest.fixture
def course(tmp_path):
    return TinyCourse(tmp_path / "course")


@pytest.fixture
def student(course, at_home):
    return at_home(course)


def new_version(course, news=NEWS):
    """Publish the chapter's next version: a cell more, another stub, a check more."""
    for folder in ("solutions", "chapters"):
        path = course.root / folder / CHAPTER / f"{CHAPTER}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        notebook.cells.insert(
            1, nbformat.v4.new_markdown_cell(news, id=f"news-{len(news)}-{len(notebook.cells)}")
        )
        for cell in notebook.cells:
            cell.source = cell.source.replace("the sum of `x`", "the sum of all of `x`")
        path.write_text(nbformat.writes(notebook))
    more = '\n\ndef test_zero(doubled):\n    """Twice nothing."""\n    x = torch.zeros(3)\n'
    more += "    assert_same_bits(doubled.ask(x).value, x)\n"
    course.checks("double", DOUBLE + more)


def kept(student):
    return sorted((student.my / "kept").rglob("*.ipynb"))


def test_news_come_in_and_work_stays(student, course):
    student.answers(**HALF)
    notebook = student.read()
    notebook.cells.insert(2, nbformat.v4.new_code_cell("mine = 1"))
    student.write(notebook)
    before = student.notebook.read_bytes()
    assert "up to date" in student.run("update") and not kept(student)
    new_version(course)
    said = student.run("update", "--dry-run")
    assert "would be updated" in said and student.notebook.read_bytes() == before
    said = student.run("update")
    assert "the course's cells: 1 new; kept of yours: 2 answers, 1 other cell" in said
    assert "`total`: its stub changed" in said and "above it, as comments" in said
    sources = [cell.source for cell in student.read().cells]
    assert NEWS in sources and "mine = 1" in sources
    assert student.answer("double") == HALF["double"]
    assert "the sum of all of" in student.answer("total")
    assert student.answer("total").endswith(HALF["total"])
    (copy,) = kept(student)
    assert copy.read_bytes() == before and str(copy.relative_to(student.home)) in said
    assert "up to date" in student.run("update")
    # the new checks are there: the answer fails one and passes the new one
    states = [
        one["state"] for one in student.json("check", "double", status=1)["exercises"][0]["checks"]
    ]
    assert states == ["passed", "failed", "passed"]


def test_an_untouched_copy_is_the_new_notebook(student, course):
    new_version(course)
    student.run("update")
    released = course.root / "chapters" / CHAPTER / f"{CHAPTER}.ipynb"
    updated = json.loads(student.notebook.read_text())
    del updated["metadata"]["undertorch"]["version"]
    assert updated == json.loads(released.read_text())


def test_an_old_copy_is_known_for_what_it_is(student, course):
    """Jupyter saved from its memory over the updated notebook; later, once more an update."""
    student.answers(double=RIGHT["double"])
    before = student.notebook.read_bytes()
    for number in (1, 2):
        new_version(course, f"News, number {number}.")
        student.run("update")
    student.notebook.write_bytes(before)
    said = student.run("update")
    assert "the course's cells: 2 new, 1 changed; kept of yours: 1 answer, 0 other cells" in said
    assert student.answer("double") == RIGHT["double"]
    assert "the sum of all of" in student.answer("total")
    assert "up to date" in student.run("update")


def test_a_verdict_stands_where_a_docstring_came_in(student, course):
    stub = 'def total(x: torch.Tensor) -> float:\n    """Return the sum of `x`."""\n'
    student.answers(total=f"{stub}    return float(x.sum())\n")
    student.run("check", "total")
    new_version(course)
    student.run("update")
    assert "the sum of all of" in student.answer("total")
    (row,) = [
        row for one in student.json("progress") for row in one["rows"] if row["exercise"] == "total"
    ]
    assert row["state"] == "passed"


def test_a_folder_from_before_there_was_a_base(student, course):
    student.answers(**RIGHT)
    (student.my / STATE / "base" / CHAPTER / f"{CHAPTER}.ipynb").unlink()
    new_version(course)
    found = student.json("update")[0]
    assert found["state"] == "updated" and found["report"]["answers"] == ["double", "total"]
    assert [cell.source for cell in student.read().cells].count(NEWS) == 1


@pytest.mark.parametrize("text", ["", "{", '{"nbformat": 4, "cells": [3]}', '{"nbformat": 3}'])
def test_a_broken_notebook_is_left_alone(student, course, text):
    new_version(course)
    student.notebook.write_text(text)
    assert "Nothing was changed" in student.run("update", status=2)
    assert student.notebook.read_text() == text


def test_a_missing_notebook_comes_back(student):
    student.notebook.unlink()
    assert student.json("update")[0]["state"] == "new"
    assert student.notebook.exists()


def test_a_cell_that_counts_is_brought_back(student):
    notebook = student.read()
    notebook.cells = [cell for cell in notebook.cells if cell.id != "double"]
    student.write(notebook)
    assert "its stub is there again" in student.run("update")
    assert "NotImplementedError" in student.answer("double")


def test_saved_while_it_was_merged(student, course, monkeypatch):
    """Jupyter wrote the file between our reading and our writing: its text wins."""
    new_version(course)
    merge = updating.merge

    def slow_merge(*notebooks):
        student.answers(**RIGHT)
        return merge(*notebooks)

    monkeypatch.setattr(updating, "merge", slow_merge)
    assert "saved by someone else meanwhile" in student.run("update", status=2)
    assert student.answer("double") == RIGHT["double"]


@pytest.mark.parametrize("at", [1, 2])
def test_stopped_between_two_writes(student, course, monkeypatch, at):
    """Old or new, never half of it; and the next update goes on from there."""
    student.answers(**RIGHT)
    new_version(course)
    write, calls = updating.write_atomically, []

    def stop(path, content):
        calls.append(path)
        if len(calls) == at:
            raise KeyboardInterrupt
        write(path, content)

    with monkeypatch.context() as patch:
        for module in (updating, versions):
            patch.setattr(module, "write_atomically", stop)
        student.run("update", status=130)
    assert student.answer("double") == RIGHT["double"]
    student.run("update")
    assert student.answer("total").endswith(RIGHT["total"])
    assert [cell.source for cell in student.read().cells].count(NEWS) == 1
    assert not list(student.folder.glob(".*"))


def test_in_the_middle_of_a_term(student, course):
    """Submissions of the old version are graded before and after; so is what was updated."""
    course.hand_in("ada", RIGHT)
    course.hand_in("bea", HALF)
    course.run("undertorch", "grade", CHAPTER, "--jobs", "1")
    before = course.scores()
    student.answers(**HALF)
    new_version(course)
    course.run("undertorch", "grade", CHAPTER, "--jobs", "1", "--force")
    after = course.scores()
    assert after.keys() == before.keys()
    assert after["ada", "double-grade"] == before["ada", "double-grade"] == 4.0
    assert (before["bea", "double-grade"], after["bea", "double-grade"]) == (2.0, 2.67)
    student.run("update")
    folder = course.root / "submitted" / "carl" / CHAPTER
    folder.mkdir(parents=True)
    (folder / f"{CHAPTER}.ipynb").write_bytes(student.notebook.read_bytes())
    course.run("undertorch", "grade", CHAPTER, "--jobs", "1")
    for cell in ("double-grade", "total-grade"):
        assert course.scores()["carl", cell] == course.scores()["bea", cell]


def test_the_real_chapters_from_an_edited_copy(course):
    """Every chapter of this course, with each second exercise answered, comes out whole."""
    from grader.student.merge import lost, merge
    from tests import ROOT

    for chapter in Course(ROOT).chapters():
        base = json.loads(json.dumps(chapter.notebook))
        mine, new = json.loads(json.dumps(base)), json.loads(json.dumps(base))
        for number, exercise in enumerate(chapter.exercises):
            for cell in mine["cells"]:
                if cell["id"] == exercise.id and number % 2:
                    cell["source"] = f"def {exercise.id}():\n    return {number}\n"
        for cell in new["cells"][::5]:
            if "nbgrader" not in cell["metadata"]:
                cell["source"] += "\n# new"
        merged, report = merge(base, mine, new)
        assert len(report.answers) == len(chapter.exercises) // 2
        assert not report.said and not report.own and not lost(base, mine, merged)
        assert [cell["id"] for cell in merged["cells"]] == [cell["id"] for cell in new["cells"]]
