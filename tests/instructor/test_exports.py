"""Files for Canvas and Moodle, through our command and through nbgrader's own."""

import csv

import pytest

from grader.nbgrader.spreadsheet import csv_text, defused
from tests.instructor.conftest import UNREADABLE
from tests.scale.course import CHAPTER


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_canvas(graded):
    said = graded.run("undertorch", "export", "--for", "canvas", "--out", "lms/canvas.csv")
    assert "canvas.csv" in said
    header, possible, *students = read(graded.root / "lms" / "canvas.csv")
    assert header == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", CHAPTER]
    assert possible == ["Points Possible", "", "", "", "", "6"]
    rows = {row[2]: row for row in students}
    assert rows["ada"] == ["Byron, Ada", "", "ada", "ada", "", "6"]
    assert rows["bea"][5] == "4" and rows["fred"][5] == "0"
    assert rows["hana"][0] == '\'=HYPERLINK("x"), Hana'
    assert rows["hana"][5] == ""  # handed in nothing: for a person to decide


def test_moodle(graded):
    graded.run("undertorch", "export", CHAPTER, "--for", "moodle", "--out", "lms/moodle.csv")
    header, *students = read(graded.root / "lms" / "moodle.csv")
    assert header[2:5] == ["ID number", "Username", "Email address"]
    assert header[5:] == [CHAPTER, f"{CHAPTER} feedback"]
    rows = {row[3]: row for row in students}
    assert rows["ada"][5:] == ["6", "2 of 2 exercises have points."]
    assert rows["hana"][4:] == ["hana@example.edu", "", ""]


def points(graded, command, out, *columns):
    """Export; return by student what the columns hold."""
    said = graded.run(*command)
    header, *rows = read(graded.root / out)
    place, *places = map(header.index, columns)
    return said, {row[place]: [row[index] for index in places] for row in rows}


EXPORTS = [
    (("undertorch", "export", "--for", "canvas"), "canvas.csv", ("SIS User ID", CHAPTER)),
    (("undertorch", "export", "--for", "moodle"), "moodle.csv",
     ("Username", CHAPTER, f"{CHAPTER} feedback")),
    (("nbgrader", "export"), "grades.csv",
     ("student_id", "raw_score", "late_submission_penalty", "score")),
]  # fmt: skip


@pytest.mark.parametrize(("command", "out", "columns"), EXPORTS)
def test_what_nobody_could_grade_has_no_points(graded, command, out, columns):
    """Torn, empty, missing; and a part that a person scored is not the whole."""
    graded.execute(SCORE.format("3.5", "AND c.name = 'double-grade'"))
    try:
        said, shown = points(graded, command, out, *columns)
        assert {cell for name in UNREADABLE for cell in shown[name]} == {""}
        assert shown["bea"][0] == "4" and shown["fred"][0] == "0"
        if command[0] == "undertorch":
            assert "nobody has scored all of it: ivy, jan, kim." in said
        graded.execute(SCORE.format("1.25", "AND c.name = 'total-grade'"))
        assert points(graded, command, out, *columns)[1]["ivy"][0] == "4.75"
    finally:
        graded.execute(SCORE.format("NULL", ""))


@pytest.mark.parametrize("command", [EXPORTS[0][0], EXPORTS[2][0]])
def test_points_that_are_not_regraded_yet_are_named(graded, command):
    """New points are in the header at once, in the rows only after a regrade."""
    graded.execute(WORTH.format(8, 4))
    try:
        said = graded.run(*command)
        assert "tiny: judged when exercises were worth other points: ada, bea" in said
        assert "First: undertorch regrade tiny" in said
    finally:
        graded.execute(WORTH.format(4, 8))
    assert "other points" not in graded.run(*command)


WORTH = "UPDATE grade_cells SET max_score = {} WHERE max_score = {}"

SCORE = (
    "UPDATE grade SET manual_score = {} WHERE id IN (SELECT g.id FROM grade g"
    " JOIN submitted_notebook n ON g.notebook_id = n.id"
    " JOIN submitted_assignment a ON n.assignment_id = a.id"
    " JOIN base_cell c ON g.cell_id = c.id WHERE a.student_id = 'ivy' {})"
)


def test_a_gradebook_is_not_made_by_looking(graded, tmp_path):
    (tmp_path / "chapters").mkdir()
    (tmp_path / "grader").mkdir()
    said = type(graded).run(
        _Elsewhere(tmp_path), "undertorch", "export", "--for", "moodle", status=2
    )
    assert "no gradebook" in said
    assert not list(tmp_path.rglob("*.db")) and not list(tmp_path.rglob("*.csv"))


class _Elsewhere:
    """A folder that commands run in, as in a course."""

    def __init__(self, root):
        from tests.forked import Forked

        self.command = lambda *command: Forked(root, command)


def test_the_same_file_through_nbgrader(graded):
    from nbgrader.apps import ExportApp

    graded.run("undertorch", "export", "--for", "canvas", "--out", "lms/ours.csv")
    app = ExportApp()
    app.initialize([])
    app.coursedir.db_url = f"sqlite:///{graded.root}/gradebook.db"
    app.plugin_class = "grader.nbgrader.exports.CanvasExporter"
    app.config.ExportPlugin.to = str(graded.root / "lms" / "theirs.csv")
    app.start()
    theirs = (graded.root / "lms" / "theirs.csv").read_bytes()
    assert theirs == (graded.root / "lms" / "ours.csv").read_bytes()


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1", "\n=1"],
)
def test_text_becomes_no_formula(text):
    assert defused(text).startswith("'")


def test_numbers_stay_numbers():
    assert [defused(v) for v in (-1.5, 0, None, 84.0, 1 / 3)] == [
        "-1.5",
        "0",
        "",
        "84",
        "0.3333333333",
    ]


def test_any_name_fits_one_row():
    name = 'A "q", b\r\nc\ud800\0'
    ((back, points),) = csv.reader(csv_text([[name, 4]]).splitlines(keepends=True))
    assert back == 'A "q", b\r\nc?' and points == "4"
