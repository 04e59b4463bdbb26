"""The parallel command and plain nbgrader leave the same notebooks, rows and evidence."""

import pytest

from tests.scale.course import CHAPTER, LATE, RIGHT, SQUARES, TinyCourse


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """Two courses with the same class, one graded by nbgrader, one by ours."""
    plain, ours = (TinyCourse(tmp_path_factory.mktemp(name)) for name in ("plain", "ours"))
    for course in (plain, ours):
        course.hand_in_a_class()
        with (course.root / "nbgrader_config.py").open("a") as config:
            config.write("get_config().LateSubmissionPlugin.penalty_method = 'zero'\n")
        due = "--duedate=2030-01-01 00:00:00 UTC"
        course.run("nbgrader", "db", "assignment", "add", CHAPTER, due)
    plain.run("nbgrader", "autograde", CHAPTER)
    ours.said = ours.run("undertorch", "grade", CHAPTER, "--jobs", "2")
    return plain, ours


@pytest.mark.parametrize("folder", ["autograded", "evidence"])
def test_same_files(graded, folder):
    plain, ours = (course.files(folder) for course in graded)
    assert list(plain) == list(ours)
    assert plain == ours


def test_same_rows(graded):
    plain, ours = graded
    assert plain.rows() == ours.rows()


def test_the_late_pay_and_the_early_do_not(graded):
    penalties = {row[0]: row[5] for row in graded[1].rows()[0]}
    assert penalties["bea"] == 4.0
    assert penalties["ada"] is None


def test_each_end_has_its_name(graded):
    ours = graded[1]
    outcomes = {name: ours.verdicts(name)["double"]["outcome"] for name in ours.all_graded()}
    assert outcomes == {
        "ada": "passed", "bea": "failed", "carl": "failed", "dora": "not attempted",
        "emil": "timed out", "fred": "passed", "gus": "needs review", "hana": "needs review",
    }  # fmt: skip
    assert ours.verdicts("carl")["double"]["mistake"] == "squares"
    assert ours.verdicts("fred")["total"]["outcome"] == "crashed"
    assert "8 graded, 2 of them need review" in ours.said


def test_a_card_may_shorten_the_budget(graded):
    """`double` declares one second, `total` keeps the course's limits."""
    summary = graded[1].verdicts("emil")["double"]["summary"]["what"]
    assert summary == "Your code used more than 1 s of processor time."


def test_graded_ones_are_skipped_unless_newer(graded):
    ours = graded[1]
    before = ours.files("autograded")
    ours.hand_in("ada", SQUARES, stamp=LATE)  # newer
    ours.hand_in("carl", RIGHT)  # no time: nbgrader takes it for the old one
    said = ours.run("undertorch", "grade", CHAPTER)
    assert "1 graded, 0 of them need review; 7 were graded before." in said
    changed = {name for name, file in ours.files("autograded").items() if before.get(name) != file}
    assert {name.split("/")[1] for name in changed} == {"ada"}
    assert ours.scores()["ada", "double-grade"] == 0.0


def test_what_a_person_gave_stays_and_is_looked_at_again(graded):
    ours = graded[1]
    ours.execute(
        "UPDATE grade SET manual_score = 3 WHERE cell_id IN"
        " (SELECT id FROM base_cell WHERE name = 'double-grade')"
    )
    ours.run("undertorch", "grade", CHAPTER, "--student", "fred", "--force", "--seed", "11")
    row = next(row for row in ours.rows()[0] if row[:2] == ("fred", "double-grade"))
    assert row[2:5] == (4.0, 3.0, 1)
    assert ours.record("fred")["seed"] == 11
