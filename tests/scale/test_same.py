"""The parallel command and plain nbgrader leave the same notebooks, rows and evidence."""

import pytest

from tests.scale.course import CHAPTER, HALF, LATE, RIGHT, SQUARES, TinyCourse


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


def test_what_was_handed_in_again_is_graded_again(graded):
    """By what it is: nbgrader takes a file without a newer time for the old one."""
    plain, ours = graded
    before = ours.files("autograded")
    for course in graded:
        course.hand_in("ada", SQUARES, stamp=LATE)  # newer
        course.hand_in("carl", RIGHT)  # without a time
    plain.run("nbgrader", "autograde", CHAPTER)
    said = ours.run("undertorch", "grade", CHAPTER)
    assert "2 graded, 0 of them need review; 6 were graded before." in said
    assert "Fewer points than before: ada 6 → 0." in said  # what is late has no points here
    changed = {name for name, file in ours.files("autograded").items() if before.get(name) != file}
    assert {name.split("/")[1] for name in changed} == {"ada", "carl"}
    assert plain.rows() == ours.rows()
    assert "0 graded" in ours.run("undertorch", "grade", CHAPTER)


def test_what_a_person_gave_stays_and_is_looked_at_again(graded):
    ours = graded[1]
    ours.execute(
        "UPDATE grade SET manual_score = 3 WHERE cell_id IN"
        " (SELECT id FROM base_cell WHERE name = 'double-grade')"
    )
    said = ours.run("undertorch", "grade", CHAPTER, "--student", "fred", "--force", "--seed", "11")
    assert "A score given by hand stands; look again whether it fits: fred." in said
    row = next(row for row in ours.rows()[0] if row[:2] == ("fred", "double-grade"))
    assert row[2:5] == (4.0, 3.0, 1)
    assert ours.record("fred")["seed"] == 11


def test_which_submission_counts(tmp_path):
    course = TinyCourse(tmp_path)
    config = (tmp_path / "nbgrader_config.py").read_text()

    def counts(which):
        text = f"{config}\nget_config().GradeInBox.counts = {which!r}\n"
        (tmp_path / "nbgrader_config.py").write_text(text)

    def doubles():
        return {name: score for (name, cell), score in course.scores().items() if "double" in cell}

    counts("best")
    course.hand_in("ada", RIGHT)
    course.hand_in("bea", HALF)
    course.hand_in("carl", HALF)
    course.run("undertorch", "grade", CHAPTER, "--jobs", "1")
    kept = course.files("autograded/ada"), course.record("ada")["submission"]
    course.hand_in("ada", HALF)
    course.hand_in("bea", RIGHT)
    course.hand_in("carl", HALF)
    (tmp_path / "submitted/carl" / CHAPTER / f"{CHAPTER}.ipynb").write_text("{")
    said = course.run("undertorch", "grade", CHAPTER, "--jobs", "1")
    earlier = "the one before is the best: ada 6 (the new one: 4), carl 4 (the new one: no score)."
    assert earlier in said
    assert doubles() == {"ada": 4.0, "bea": 4.0, "carl": 2.0}
    assert (course.files("autograded/ada"), course.record("ada")["submission"]) == kept
    assert "0 graded" in course.run("undertorch", "grade", CHAPTER)
    assert "No verdict changes." in course.run("undertorch", "regrade", CHAPTER)
    counts("first")
    course.hand_in("bea", SQUARES)
    said = course.run("undertorch", "grade", CHAPTER, "--force", "--student", "bea")
    assert "Handed in again, but the first counts: bea." in said
    course.run("nbgrader", "autograde", CHAPTER)
    assert doubles() == {"ada": 4.0, "bea": 4.0, "carl": 2.0}
    counts("latest")
    course.run("nbgrader", "autograde", CHAPTER)
    assert doubles() == {"ada": 2.0, "bea": 0.0}  # and nobody knows what `carl` has
