"""What students hand in, graded with nbgrader's steps: a file beside the notebook."""

from tests.scale.course import CHAPTER, RIGHT, SQUARES, TinyCourse


def test_a_file_beside_the_notebook_is_graded(tmp_path):
    course = TinyCourse(tmp_path)
    course.hand_in("ada", {"total": RIGHT["total"]})
    course.hand_in("bea", SQUARES)
    for student in ("ada", "bea"):
        path = course.root / "submitted" / student / CHAPTER / "double.py"
        path.write_text(RIGHT["double"])
    link = course.root / "submitted" / "bea" / CHAPTER / "total.py"
    link.symlink_to("/etc/hostname")
    course.run("undertorch", "grade", CHAPTER, "--jobs", "1")
    assert course.scores()["ada", "double-grade"] == 4.0
    assert "`double.py`, which lies beside" in str(course.verdicts("ada")["double"]["notes"])
    assert course.scores()["bea", "double-grade"] == 0.0
    assert course.scores()["bea", "total-grade"] == 2.0
    assert "The cell in the notebook was graded." in str(course.verdicts("bea")["double"]["notes"])
    # plain nbgrader says the same
    course.run("nbgrader", "autograde", CHAPTER, "--student=ada", "--force")
    assert course.scores()["ada", "double-grade"] == 4.0
