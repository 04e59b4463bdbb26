"""What a second grading makes of a first: no old score stays, what was handed in again is graded again."""

import json

import pytest

from tests.attacks import harness

BROKEN = """
from nbgrader.preprocessors import NbGraderPreprocessor

class Step(NbGraderPreprocessor):
    def preprocess(self, nb, resources):
        raise RuntimeError("this step is broken")
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A class of one, graded once: right, handed in at ten."""
    course = harness.make_class(tmp_path_factory.mktemp("course"), "5eed", 0)
    notebook = harness.hand_in(course, "ada", harness.right_answers(course))
    (notebook.parent / "timestamp.txt").write_text("2030-01-31 10:00:00 UTC")
    course.run("nbgrader", "autograde", harness.CHAPTER)
    assert course.rows()["ada"] == scores(course, full=True)
    return course


def scores(course, full):
    return {
        f"{name}-grade": (course.most[name] if full else None, not full)
        for name in harness.EXERCISES
    }


def submit(course, text, stamp, student="ada"):
    folder = course.root / "submitted" / student / harness.CHAPTER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "formats.ipynb").write_text(text)
    (folder / "timestamp.txt").write_text(stamp)


def test_a_torn_file_leaves_no_old_score_and_a_good_one_is_graded_again(course):
    submit(course, "{", "2030-01-31 11:00:00 UTC")
    log = course.run("nbgrader", "autograde", harness.CHAPTER)
    assert "ada: the notebook is not JSON (JSONDecodeError). It needs review." in log
    assert course.rows()["ada"] == scores(course, full=False)
    assert {v["outcome"] for v in course.record("ada").values()} == {"needs review"}
    submit(course, json.dumps(harness.right_answers(course)), "2030-01-31 12:00:00 UTC")
    course.run("nbgrader", "autograde", harness.CHAPTER)
    assert course.rows()["ada"] == scores(course, full=True)


def test_a_step_that_fails_leaves_no_old_score(course):
    config = course.root / "nbgrader_config.py"
    before = config.read_text()
    (course.root / "broken.py").write_text(BROKEN)
    lines = "\nimport sys\nsys.path.insert(0, '.')\n"
    config.write_text(
        f"{before}{lines}c.Autograde.autograde_preprocessors.insert(0, 'broken.Step')\n"
    )
    course.run("nbgrader", "autograde", harness.CHAPTER, "--force", ok=False)
    assert course.rows()["ada"] == {f"{name}-grade": (None, True) for name in harness.EXERCISES}
    config.write_text(before)
    course.run("nbgrader", "autograde", harness.CHAPTER)
    assert course.rows()["ada"] == scores(course, full=True)


def test_a_time_after_none_is_graded_again(course):
    submit(course, "{", "one of these days", "bob")
    course.run("nbgrader", "autograde", harness.CHAPTER, "--student=bob")
    right = harness.right_answers(course)
    submit(course, json.dumps(right), "2030-01-31 10:00:00 UTC", "bob")
    course.run("nbgrader", "autograde", harness.CHAPTER)
    assert course.rows()["bob"] == scores(course, full=True)


def test_odd_names_are_names_and_one_that_breaks_a_line_stops_nobody(course):
    right = json.dumps(harness.right_answers(course))
    odd = ["o'brien & <b>", "ünï cödé", "[a-z]*", "-rf", "zoe"]
    for student in [*odd, "a\nb"]:
        submit(course, right, "2030-01-31 10:00:00 UTC", student)
    log = course.run("nbgrader", "autograde", harness.CHAPTER)
    assert r"'a\nb' can be no student's id" in log
    rows = course.rows()
    assert {student: rows[student] for student in odd} == dict.fromkeys(
        odd, scores(course, full=True)
    )
    assert "a\nb" not in rows
