"""Sources of question pages: what a block must have, and where its links lead."""

from pathlib import Path

import pytest

from grader.building.build import Built, build_questions
from grader.building.places import place
from grader.building.programs import Program, printed
from grader.building.questions import FOLDER, read_questions
from grader.building.views import View
from grader.course.course import AuthorError, Course, find_course
from tests.browser import ROOT

COURSE = find_course(ROOT)
BLOCK = """\
# Shapes: questions

# %% {name}
# Does it
# copy?
#
# {answer}
#
# Look: strides/cells#shape=2x3&ops=transpose.0.1 | What there is to see.
#
# Go on: ch02_strides#view_stride, questions/index
print(1)
"""


def read(folder: Path, text: str):
    path = folder / "ch02_strides.py"
    path.write_text(text, encoding="utf-8")
    return read_questions(path)


def test_a_block_is_read(tmp_path):
    title, (one,) = read(tmp_path, BLOCK.format(name="does-it-copy", answer="Never."))
    assert title == "Shapes"
    assert (one.name, one.asked, one.answer) == ("does-it-copy", "Does it copy?", "Never.")
    assert one.view == View(
        "strides", "cells", "shape=2x3&ops=transpose.0.1", "What there is to see."
    )
    assert one.further == ("ch02_strides#view_stride", "questions/index")
    assert one.code == "print(1)"


@pytest.mark.parametrize(
    ("name", "answer", "told"),
    [
        ("does-it-copy", "word " * 151, "in 151 words"),
        ("Does it copy", "Never.", "lower case"),
        ("does-it-copy", "", "an answer"),
    ],
)
def test_a_faulty_block_is_refused(tmp_path, name, answer, told):
    with pytest.raises(AuthorError, match=told):
        read(tmp_path, BLOCK.format(name=name, answer=answer))


def test_a_view_says_what_there_is_to_see(tmp_path):
    text = BLOCK.format(name="does-it-copy", answer="Never.")
    with pytest.raises(AuthorError, match="what there is to see"):
        read(tmp_path, text.replace(" | What there is to see.", ""))


def test_places_are_found_by_name():
    view = place(COURSE, "ch02_strides#view_stride")
    assert view.title == "Decide whether a view is possible"
    assert view.link("questions").startswith(f"[{view.title}](../chapters/ch02_strides")
    myth = place(COURSE, "myths#contiguous-copies")
    assert (myth.page, myth.title) == ("myths.md", "`contiguous()` copies.")
    assert place(COURSE, "explorers/strides").page == "explorers/strides.md"
    for named in ("ch02_strides#nothing", "ch02_strides", "myths#nothing", "explorers/nothing"):
        with pytest.raises(AuthorError, match="There is no"):
            place(COURSE, named)


def test_a_page_whose_question_is_gone_goes(tmp_path):
    page = tmp_path / FOLDER / "gone.md"
    page.parent.mkdir(parents=True)
    page.write_text("")
    assert build_questions(Course(tmp_path)) == [Built(FOLDER / "gone.md", None)]


def test_a_program_must_run_and_say_the_same_each_time():
    with pytest.raises(AuthorError, match="ValueError: no"):
        printed(COURSE, [[Program("raises", "raise ValueError('no')")]])
    with pytest.raises(AuthorError, match="second prints nothing, or an address"):
        printed(COURSE, [[Program("first", "print(1)"), Program("second", "print(object())")]])


def test_a_program_says_the_same_where_pytorch_is_told_that_this_is_ci(monkeypatch):
    monkeypatch.setenv("CI", "true")
    program = Program("told", "import os; print(os.environ.get('CI'), os.environ['PATH'] != '')")
    assert printed(COURSE, [[program]]) == [["None True"]]
