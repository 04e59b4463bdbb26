"""A class list is read whole, or every wrong line is named."""

from dataclasses import replace

import pytest

from grader.course.course import CourseError
from grader.instructor.roster import compare, read_roster
from grader.nbgrader.coursebook import Student

ADA = Student("ada", "Ada", "Lovelace", "ada@example.edu")


CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,Formats (17),Final Score
,,,,,Manual Posting,(read only)
    Points Possible,,,,,38.0,(read only)
"Lovelace, Ada",4711,u-01,ada,Physics 1,38,100
"Student, Test",99,,f2f6f4,Physics 1,,0
"""
MOODLE = """\
"First name","Last name","ID number","Email address",Groups
Ada,Lovelace,ada,ada@example.edu,"A, B"
"""


def read(folder, text, encoding="utf-8", **options):
    path = folder / "students.csv"
    path.write_bytes(text.encode(encoding))
    return read_roster(path, **options)


@pytest.mark.parametrize(
    "header", ["id,first name,last name,email", "ID,First_Name,Last-Name,E-mail"]
)
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_what_spreadsheets_write(tmp_path, header, delimiter):
    text = f"{header},group\nada,Ada,Lovelace,ada@example.edu,3\n\n".replace(",", delimiter)
    assert read(tmp_path, text, "utf-8-sig") == [ADA]


def test_a_quoted_cell_may_hold_the_delimiter(tmp_path):
    assert read(tmp_path, 'id,last name\nbea,"Byron, of Rochdale"\n')[0].last_name.endswith("dale")


def test_canvas_s_own_file(tmp_path):
    """Its rows without a student are none, and its number is what an export needs."""
    ada = Student("ada", "Ada", "Lovelace", None, "4711")
    assert read(tmp_path, CANVAS) == [ada]
    assert read(tmp_path, CANVAS, id_column="SIS User ID") == [replace(ada, id="u-01")]


def test_moodle_s_own_file(tmp_path):
    assert read(tmp_path, MOODLE, "utf-8-sig") == [ADA]
    named = MOODLE.replace("Groups", "Username").replace('"A, B"', "alove")
    assert read(tmp_path, named) == [replace(ADA, id="alove", lms_user_id="ada")]
    with pytest.raises(CourseError, match="no column 'login'"):
        read(tmp_path, MOODLE, id_column="login")


def test_wrong_lines_are_all_named(tmp_path):
    text = 'id,email\nada,a@b\n,c@d\nada,e@f\na/b,g@h\n"two\nlines",i@j\ngus,nowhere\nhal\n.,k@l\n"b,c",m@n\n'
    with pytest.raises(CourseError) as caught:
        read(tmp_path, text)
    said = str(caught.value)
    assert "nothing was imported" in said
    for line in (
        "line 3: no id",
        "line 4: ada stands in line 2 already",
        "line 5: the id 'a/b' cannot name a folder",
        r"line 7: the id 'two\nlines' cannot",
        "line 8: 'nowhere' is no e-mail address",
        "line 9: 1 cells, the first line has 2",
        "line 10: the id '.' cannot",
        "line 11: the id 'b,c' cannot",
    ):
        assert line in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "first line must name the columns"),
        ("ada,Ada\n", "first line must name the columns"),
        ("id,id\n", "two columns are called id"),
        ("id\n", "names no student"),
        ('id\n"ada\n', "line 2"),
    ],
)
def test_a_list_that_is_none(tmp_path, text, said):
    with pytest.raises(CourseError, match=said):
        read(tmp_path, text)


def test_another_encoding_is_said(tmp_path):
    with pytest.raises(CourseError, match="not UTF-8"):
        read(tmp_path, "id,last name\nada,Müller\n", "latin-1")


def test_changes_are_said():
    bea, carl = Student("bea", "Bea", email="bea@example.edu"), Student("carl")
    filled = Student("carl", "Carl", "Gauss", "carl@example.edu", "12")
    known = {"ada": Student("ada", "Ada", "King", "ada@example.edu", ""), "carl": filled}
    known["zoe"] = zoe = Student("zoe")
    changes = compare(known, [ADA, bea, carl])
    assert changes.added == (bea,)
    assert changes.changed == {"ada": ("last name: King → Lovelace",)}
    assert (changes.unchanged, changes.absent) == (1, (zoe,))


def test_who_it_is_is_said_by_more_than_the_id():
    """An id is a number to many: who reads "new" sees there that first and last name are swapped."""
    assert str(ADA) == "ada (Ada Lovelace, ada@example.edu)"
    assert [str(Student("4711", last_name="Gauss")), str(Student("4711", email=""))] == [
        "4711 (Gauss)",
        "4711",
    ]
