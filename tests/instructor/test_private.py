"""A private course folder: its notebooks ask for what its secret draws, and keep to it."""

import json

import pytest

from grader.course.course import COURSE_FILE, CourseError, course_at
from grader.instructor.folder import apply_course, new_course


@pytest.fixture(scope="module")
def autumn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("private") / "autumn"
    new_course(folder, [], ["read_element", "decode"], private=True)
    return folder, apply_course(folder)


def test_the_notebooks_have_the_drawn_values(autumn):
    folder, report = autumn
    drawn = {applied.chapter: applied.variant for applied in report.chapters}
    assert drawn["ch01_formats"] == {}
    values = drawn["ch02_strides"]["read_element"]
    assert course_at(folder).chapter("ch02_strides").exercise("read_element").variant == values
    released = json.loads((folder / "release/ch02_strides/strides.ipynb").read_text())
    calls = ["".join(cell["source"]) for cell in released["cells"]]
    assert f'grade("read_element", counts={values["counts"]!r})' in calls


def test_the_secret_is_the_instructors(autumn):
    folder, _ = autumn
    secret = folder / "secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    for notebook in folder.glob("*/*/*.ipynb"):
        assert secret.read_text().strip() not in notebook.read_text()


def test_a_second_apply_changes_nothing(autumn):
    folder, _ = autumn
    assert {applied.state for applied in apply_course(folder).chapters} == {"unchanged"}


def test_what_students_may_have_is_not_replaced(autumn):
    folder, _ = autumn
    file = folder / COURSE_FILE
    before = file.read_text()
    file.write_text(before.replace('secret = "secret"', 'secret = ""'))
    with pytest.raises(CourseError, match="another variant of ch02_strides"):
        apply_course(folder)
    file.write_text(before.replace('secret = "secret"', 'secret = "lost"'))
    with pytest.raises(CourseError, match="There is no secret"):
        apply_course(folder)
    file.write_text(before)
