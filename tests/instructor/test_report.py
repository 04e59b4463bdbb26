"""The class in one page: what is counted, what is shown, what is not given away."""

import csv
import json
import re
import time
from dataclasses import replace

import pytest

from grader.course.course import Course, CourseError
from grader.instructor.classroom import Classroom, GradedSubmission, Result, read_classrooms
from grader.instructor.report import group_of, report_on
from grader.instructor.report_files import report_page
from grader.nbgrader.results import Person
from tests.browser import PHONE
from tests.instructor.conftest import UNREADABLE
from tests.scale.course import CHAPTER, TinyCourse


def untracked(things, what):
    return things


@pytest.fixture(scope="module")
def room(graded):
    return read_classrooms([Course(graded.root).chapter(CHAPTER)], untracked)[0]


@pytest.fixture(scope="module")
def page(graded):
    graded.run("undertorch", "report", "--out", "out/report.html", "--csv", "out/report.csv")
    return graded.root / "out" / "report.html"


def by_name(room):
    return {one.person.id: one for one in room.submissions}


def test_points_outcomes_and_who_is_missing(room):
    points = {name: one.points for name, one in by_name(room).items()}
    assert points["ada"] == 6 and points["bea"] == 4 and points["fred"] == 0
    assert [points[name] for name in UNREADABLE] == [None, None, None]
    assert [person.id for person in room.absent] == ["hana"]
    groups = {group_of(result) for one in room.submissions for result in one.results}
    assert groups == {
        "passed", "some points", "no points", "ended early", "not attempted", "unknown",
    }  # fmt: skip


def test_mistakes_are_counted_with_their_explanation(room):
    report = report_on(room)
    assert [(m.exercise, m.mistake, m.students) for m in report.mistakes] == [
        ("double", "squares", ("carl", "dora"))
    ]
    assert report.mistakes[0].explanation == "You squared it."
    assert [(m.explanation, m.students) for m in report.undiagnosed] == [
        ("test_negative", ("bea",))
    ]


def test_what_stands_out(room):
    report = report_on(room)
    assert {(e.student, e.what) for e in report.ended} == {
        ("emil", "timed out"),
        ("gus", "crashed"),
    }
    assert [one.person.id for one in report.late] == ["bea"]
    assert report.late[0].late == 6 * 3600
    (why,) = dict(report.review)["ivy"]
    assert why.startswith("The submission is unreadable: ")
    seconds = by_name(room)["emil"].results[0].seconds
    assert seconds is not None and seconds > 0.5  # its card lets it have one second


def test_a_note_beside_points_is_no_review():
    def one(name, points):
        result = Result("f", points, 1.0, "failed", review="Look at it.")
        return GradedSubmission(Person(name), (result,))

    room = Classroom("c", "C", (("f", "F", 1.0),), (one("ada", 0.0), one("bea", None)), ())
    report = report_on(room)
    assert (report.review, report.noted) == (
        (("bea", ("Look at it.",)),),
        (("ada", ("Look at it.",)),),
    )
    page = report_page([report], day="", anonymous=False)
    assert (
        "1 needs review, 1 has a note for a person" in page and ">A note for a person</h3>" in page
    )


def test_slow_is_slow_beside_the_class():
    def one(name, seconds):
        return GradedSubmission(Person(name), (Result("f", 1.0, 1.0, "passed", seconds=seconds),))

    quick = [one(f"s{n}", 0.1) for n in range(9)]
    room = Classroom("c", "C", (("f", "F", 1.0),), (*quick, one("slow", 6.0)), ())
    assert [event.student for event in report_on(room).slow] == ["slow"]
    busy = replace(room, submissions=tuple(one(f"s{n}", 6.0) for n in range(9)))
    assert not report_on(busy).slow


def test_a_score_given_by_hand_counts(graded):
    statement = "UPDATE grade SET manual_score = {} WHERE auto_score = 2.0 AND id IN (SELECT g.id FROM grade g JOIN submitted_notebook n ON g.notebook_id = n.id JOIN submitted_assignment a ON n.assignment_id = a.id JOIN base_cell c ON g.cell_id = c.id WHERE a.student_id = 'bea' AND c.name = 'double-grade')"
    graded.execute(statement.format("3.5"))
    try:
        room = read_classrooms([Course(graded.root).chapter(CHAPTER)], untracked)[0]
    finally:
        graded.execute(statement.format("NULL"))
    bea = by_name(room)["bea"]
    assert bea.points == 5.5 and bea.results[0].by_hand


def test_the_page_is_whole_and_asks_nobody(page, watch):
    watch.page.goto(page.as_uri())
    assert watch.overflow() == 0
    assert watch.page.locator("h3").all_inner_texts() == [
        "Exercises", "Mistakes", "Needs review", "Crashed and slow", "Late", "Students",
    ]  # fmt: skip
    students = watch.page.locator("table").last
    students.get_by_role("button", name="points").click()
    students.get_by_role("button", name="points").click()
    assert students.locator("tbody tr").first.inner_text().startswith("ada\tAda Byron\t6")
    watch.turn_to(PHONE, "dark")
    assert watch.overflow() == 0
    watch.turn_to(1280, "light")
    assert page.stat().st_mode & 0o777 == 0o600


def test_rows_for_a_spreadsheet(page):
    rows = list(csv.DictReader((page.parent / "report.csv").open()))
    assert len(rows) == 20
    assert {row["points"] for row in rows if row["student"] in UNREADABLE} == {""}
    row = next(r for r in rows if (r["student"], r["exercise"]) == ("carl", "double"))
    assert (row["outcome"], row["mistake"], row["max_points"]) == ("failed", "squares", "4")


def test_anonymous_names_nobody(graded, page):
    graded.run("undertorch", "report", "--anonymous", "--out", "out/anonymous.html")
    text = (page.parent / "anonymous.html").read_text()
    words = set(re.findall(r"\w+", re.sub(r"<(script|style)>.*?</\1>", "", text, flags=re.DOTALL)))
    assert not words & {"ada", "Byron", "bea", "carl", "dora", "emil", "fred", "gus", "hana", "ivy"}
    assert "student 1" in text


def test_json_is_for_scripts(graded):
    (data,) = json.loads(graded.run("undertorch", "report", CHAPTER, "--json"))
    assert data["room"]["chapter"] == CHAPTER
    assert data["room"]["submissions"][0]["points"] == 6


def test_text_of_students_is_escaped(room):
    evil = "<script>alert(1)</script>\ud800"
    one = by_name(room)["ada"]
    named = replace(one, person=Person("x", first_name=evil), trouble=evil)
    html = report_page([report_on(replace(room, submissions=(named,)))], day="", anonymous=False)
    assert "<script>alert" not in html and "&lt;script&gt;alert(1)" in html


def test_nothing_graded_says_what_to_do(tmp_path):
    course = TinyCourse(tmp_path)
    with pytest.raises(CourseError, match="undertorch grade"):
        read_classrooms([Course(course.root).chapter(CHAPTER)], untracked)
    assert not (tmp_path / "gradebook.db").exists()


def test_a_thousand_students_stay_under_a_megabyte(room):
    """Ids as long as universities make them, each third one with a mistake, a tenth for review."""
    example = by_name(room)
    exercises = tuple((f"exercise_{n}", f"Exercise {n}", 6.0) for n in range(15))
    submissions = []
    for number in range(1000):
        source = example["carl"].results[0] if number % 3 == 0 else example["ada"].results[0]
        results = tuple(
            replace(
                source, exercise=name, explanation="You did this. " * 12, mistake=source.mistake
            )
            for name, _, _ in exercises
        )
        if number % 10 == 0:
            results = (
                replace(results[0], review="While it ran, the code replaced x."),
                *results[1:],
            )
        person = Person(f"student{number:06}", "Maximiliane", f"Mustermann-{number}")
        submissions.append(GradedSubmission(person, results, late=float(number % 7)))
    many = Classroom("many", "Many", exercises, tuple(submissions), ())
    start = time.process_time()
    html = report_page([report_on(many)], day="", anonymous=False)
    assert len(html.encode()) < 1_000_000
    assert time.process_time() - start < 10
