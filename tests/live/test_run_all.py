"""Restart and run all cells of a chapter as students get it: nothing stops, nothing is an attempt."""

import json

import pytest

from grader.course.cells import is_grade_cell
from grader.course.course import Course
from grader.student import journal
from grader.student.fill import fill_folder
from grader.student.folder import Folder
from tests import ROOT
from tests.person import person

CHAPTERS = Course(ROOT).chapters()


@pytest.mark.parametrize("chapter", CHAPTERS, ids=[chapter.id for chapter in CHAPTERS])
def test_run_all(chapter, tmp_path):
    fill_folder(Course(ROOT), tmp_path / "my")
    notebook = Folder(tmp_path / "my").notebook(chapter)
    verdicts, shown = {}, []
    with person(notebook.parent) as someone:
        for cell in json.loads(notebook.read_text())["cells"]:
            if cell["cell_type"] != "code":
                continue
            shown = someone.run("".join(cell["source"]), cell["id"])
            assert not shown.of("error"), cell["id"]
            if is_grade_cell(cell):
                verdicts[cell["id"]] = shown[-1]["data"]["text/plain"].split(",")[0]
    assert verdicts == dict.fromkeys((e.grade_id for e in chapter.exercises), "not attempted")
    assert not journal.read(tmp_path / "my")
    assert f"0 of {len(chapter.exercises)} exercises passed" in shown[-1]["data"]["text/plain"]
