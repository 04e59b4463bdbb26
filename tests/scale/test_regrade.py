"""A regrade judges what was kept: no student code runs, and what changed is said."""

import pytest

from tests.scale.course import CHAPTER, DOUBLE, HALF, PROBES, RIGHT, SQUARES, TinyCourse

CLASS = {"ada": RIGHT, "bea": HALF, "carl": SQUARES}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    course = TinyCourse(tmp_path_factory.mktemp("course"))
    for student, sources in CLASS.items():
        course.hand_in(student, sources)
    loops = "def double(x):\n    if (x < 0).any():\n        while True:\n            pass\n    return x * 2\n"
    course.hand_in("dora", RIGHT | {"double": loops})
    course.run("undertorch", "grade", CHAPTER, "--jobs", "2")
    return course


@pytest.fixture
def course(graded):
    yield graded
    graded.checks("double", DOUBLE)
    (graded.root / "grader" / CHAPTER / "probes/doubling.py").write_text(PROBES)


def test_nothing_changed_nothing_written(course):
    before = course.files("autograded"), course.files("evidence"), course.rows()
    assert "No verdict changes." in course.run("undertorch", "regrade", CHAPTER)
    assert (course.files("autograded"), course.files("evidence"), course.rows()) == before


def test_a_dropped_check_gives_points_back(course):
    """`bea` failed only the check that is now worth nothing; all who ended early stay so."""
    course.checks("double", DOUBLE.split("def test_negative")[0])
    said = course.run("undertorch", "regrade", CHAPTER, "--dry-run")
    assert "bea" in said and "2 → 4" in said
    assert course.scores()["bea", "double-grade"] == 2.0
    course.run("undertorch", "regrade", CHAPTER)
    assert course.scores()["bea", "double-grade"] == 4.0
    assert course.verdicts("bea")["double"]["outcome"] == "passed"
    assert "2.0" not in course.autograded("bea").read_text().split('"text/plain"')[1][:40]
    course.checks("double", DOUBLE)
    course.run("undertorch", "regrade", CHAPTER)
    assert course.scores()["bea", "double-grade"] == 2.0
    assert course.verdicts("dora")["double"]["outcome"] == "timed out"
    assert course.verdicts("carl")["double"]["mistake"] == "squares"


def test_new_inputs_need_a_real_run(course):
    course.checks(
        "double", DOUBLE.replace("ask(-x)", "ask(-x - 1)").replace("-x * 2", "(-x - 1) * 2")
    )
    before = course.rows()
    said = course.run("undertorch", "regrade", CHAPTER, status=1)
    assert "ada, double: the probe `doubled` is asked for inputs that it was not asked" in said
    assert course.rows() == before


def test_a_changed_probe_needs_a_real_run_and_the_other_does_not(course):
    probes = PROBES.replace("return student.double(x)", "return student.double(x + 0)")
    (course.root / "grader" / CHAPTER / "probes/doubling.py").write_text(probes)
    said = course.run("undertorch", "regrade", CHAPTER, status=1)
    assert "bea, double: the probe `doubled` was changed." in said
    assert "total" not in said
    commented = PROBES.replace("return student.double", "# as it was\n    return student.double")
    (course.root / "grader" / CHAPTER / "probes/doubling.py").write_text(commented)
    course.run("undertorch", "regrade", CHAPTER)


def test_points_of_the_card_reach_the_gradebook(course):
    released = course.root / f"chapters/{CHAPTER}/{CHAPTER}.ipynb"
    text = released.read_text()
    released.write_text(text.replace('"points": 4', '"points": 8'))
    course.execute(
        "UPDATE grade SET manual_score = 3 WHERE auto_score = 0 AND cell_id IN"
        " (SELECT id FROM base_cell WHERE name = 'double-grade')"
    )
    said = course.run("undertorch", "regrade", CHAPTER)
    assert "worth 8 points, was 4" in said
    assert "A score given by hand stands; look again whether it fits: carl." in said
    assert course.scores()["ada", "double-grade"] == 8.0
    course.run("undertorch", "grade", CHAPTER, "--student", "ada", "--force")
    assert course.scores()["ada", "double-grade"] == 8.0
    released.write_text(text)
    course.run("undertorch", "regrade", CHAPTER)
    assert course.scores()["ada", "double-grade"] == 4.0


def test_a_notebook_that_was_edited_is_not_judged(course):
    path = course.autograded("carl")
    text = path.read_text()
    path.chmod(0o644)
    path.write_text(text.replace("return x * x", "return x * 2"))
    said = course.run("undertorch", "regrade", CHAPTER, "--student", "carl", status=1)
    assert "the autograded notebook is not the one that was graded" in said
    path.write_text(text)


def test_evidence_is_listed_and_deleted(course):
    said = course.run("undertorch", "evidence")
    assert f"evidence/ada/{CHAPTER}" in said
    assert "0.00 MiB  in all" in course.run("undertorch", "evidence", "--older-than", "1")
    modes = {mode & 0o777 for _, mode in course.files("evidence").values()}
    assert modes == {0o600}
