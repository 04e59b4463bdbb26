"""With PostgreSQL as gradebook: the same rows as with SQLite, whoever grades, whatever it refuses."""

import threading

import pytest
from nbgrader.api import Gradebook

from grader.course.course import CourseError
from grader.nbgrader import gradebook as gradebook_rows
from grader.nbgrader.gradebook import (
    GradebookBusy,
    Place,
    forget,
    in_one_transaction,
    must_open,
    one_transaction,
)
from tests.scale.course import CHAPTER, DOUBLE, HALF, RIGHT, SQUARES, TinyCourse
from tests.scale.postgres import server

LATE = "2031-01-02 10:00:00 UTC"
DUE = "--duedate=2030-01-01 00:00:00 UTC"


@pytest.fixture(scope="module")
def postgres():
    with server() as running:
        yield running


@pytest.fixture(scope="module")
def courses(postgres, tmp_path_factory):
    """The same class in SQLite and in PostgreSQL, the latter by nbgrader and by ours."""
    made = {}
    for name in ("sqlite", "plain", "ours"):
        url = "" if name == "sqlite" else postgres.url(name)
        course = made[name] = TinyCourse(tmp_path_factory.mktemp(name), url)
        course.hand_in("ada", RIGHT)
        course.hand_in("bea", HALF, stamp=LATE)
        course.hand_in("carl", SQUARES)
        course.hand_in("x" * 129, RIGHT)
        torn = course.root / "submitted" / "gus" / CHAPTER / f"{CHAPTER}.ipynb"
        torn.parent.mkdir(parents=True)
        torn.write_text('{"cells": [')
        with (course.root / "nbgrader_config.py").open("a") as config:
            config.write("get_config().LateSubmissionPlugin.penalty_method = 'zero'\n")
        course.run("nbgrader", "db", "assignment", "add", CHAPTER, DUE)
        if name == "plain":
            course.run("nbgrader", "autograde", CHAPTER)
        else:
            course.run("undertorch", "grade", CHAPTER, "--jobs", "2")
    return made


def test_the_same_rows_as_with_sqlite(courses):
    expected = courses["sqlite"].rows()
    assert len(expected[0]) == 8
    assert courses["plain"].rows() == expected
    assert courses["ours"].rows() == expected
    assert not (courses["ours"].root / "gradebook.db").exists()


def test_a_name_that_the_schema_has_no_room_for_is_no_ones_trouble(courses):
    for course in courses.values():
        assert course.all_graded() == ["ada", "bea", "carl", "gus"]


def test_a_regrade_reaches_it(courses):
    ours = courses["ours"]
    ours.checks("double", DOUBLE.split("def test_negative")[0])
    assert "2 → 4" in ours.run("undertorch", "regrade", CHAPTER)
    assert ours.scores()["bea", "double-grade"] == 4.0
    ours.checks("double", DOUBLE)
    ours.run("undertorch", "regrade", CHAPTER)
    assert ours.scores()["bea", "double-grade"] == 2.0


def test_grading_again_keeps_what_a_person_gave(courses):
    ours = courses["ours"]
    ours.execute(
        "UPDATE grade SET manual_score = 3 WHERE cell_id IN"
        " (SELECT id FROM base_cell WHERE name = 'double-grade')"
    )
    ours.run("undertorch", "grade", CHAPTER, "--student", "ada", "--force")
    row = next(row for row in ours.rows()[0] if row[:2] == ("ada", "double-grade"))
    assert row[2:5] == (4.0, 3.0, True)
    ours.execute("UPDATE grade SET manual_score = NULL, needs_manual_grade = false")


def test_formgrader_and_export_find_what_they_ask_for(courses):
    """The queries behind formgrader's pages, and nbgrader's own feedback and export."""
    ours = courses["ours"]
    with Gradebook(ours.db_url) as gradebook:
        students = {row["id"]: row for row in gradebook.student_dicts()}
        assert students["ada"]["score"] == 6.0
        found = gradebook.submission_dicts(CHAPTER)
        assert {row["student"] for row in found} == {"ada", "bea", "carl", "gus"}
        assert {row["score"] for row in gradebook.notebook_submission_dicts(CHAPTER, CHAPTER)}
        assert gradebook.average_assignment_score(CHAPTER) > 0


def test_a_row_that_another_program_added_meanwhile_is_found(courses):
    """Two commands meet the same new student; nbgrader's own call would fail."""
    url = courses["plain"].db_url
    with Gradebook(url) as ours, Gradebook(url) as other:
        looked = []

        def add():
            if not looked:
                looked.append(ours.db.get_bind())
                ours.db.begin_nested().rollback()
                other.add_student("new")
                ours.add_student("new")
            return ours.update_or_create_student("new").id

        assert in_one_transaction(ours, add) == "new"


def test_a_locked_row_is_waited_for_then_named(courses, postgres, monkeypatch):
    """A formgrader that holds a row: PostgreSQL alone would wait for ever."""
    monkeypatch.setattr(gradebook_rows, "LOCK_SECONDS", 0.2)
    place = Place(CHAPTER, CHAPTER, "carl")
    with (
        Gradebook(courses["plain"].db_url) as held,
        Gradebook(courses["plain"].db_url) as gradebook,
    ):
        with one_transaction(held):
            forget(held, place)
            with pytest.raises(GradebookBusy, match="locked by another program"):
                in_one_transaction(gradebook, lambda: forget(gradebook, place))
        in_one_transaction(gradebook, lambda: forget(gradebook, place))


def test_a_server_that_restarts_loses_nothing(courses, postgres):
    place = Place(CHAPTER, CHAPTER, "bea")

    def forget_it():
        with Gradebook(courses["plain"].db_url) as gradebook:
            in_one_transaction(gradebook, lambda: gradebook.find_student("bea").id)
            connected.set()
            stopped.wait()
            in_one_transaction(gradebook, lambda: forget(gradebook, place))

    connected, stopped = threading.Event(), threading.Event()
    grader = threading.Thread(target=forget_it)
    grader.start()
    connected.wait(60)
    postgres.stop()
    stopped.set()
    postgres.start()
    grader.join()
    assert ("bea", "double-grade") not in courses["plain"].scores()


def test_a_course_without_an_id_is_told_to_have_one(courses, postgres, tmp_path):
    course = TinyCourse(tmp_path, postgres.url("nameless"))
    course.hand_in("ada")
    with (tmp_path / "nbgrader_config.py").open("a") as config:
        config.write("get_config().CourseDirectory.course_id = ''\n")
    said = course.run("undertorch", "grade", CHAPTER, status=2)
    assert "needs a course id" in said


def test_a_server_that_stays_away_is_named(tmp_path, monkeypatch):
    with pytest.raises(CourseError, match=r"(?s)\*\*\*@.*cannot be opened.*CourseDirectory.db_url"):
        must_open(f"postgresql+psycopg://me:secret@/x?host={tmp_path}")
    with pytest.raises(CourseError, match="cannot be opened"):
        must_open("no url")
    with pytest.raises(CourseError, match="cannot be opened"):
        must_open("nosuch://x")
