"""A course file says what it means, or which key is wrong."""

from datetime import datetime

import pytest

from grader.course.course import COURSE_FILE, CourseError
from grader.course.course_file import read_course_file

GOOD = """
course = "spring"
timezone = "Europe/Berlin"
[late]
percent_per_day = 10
[chapters.ch01_formats]
due = 2027-03-01T23:59:00
[chapters.ch01_formats.points]
decode = 4
[extensions.ada]
ch01_formats = 2027-03-05T12:00:00Z
"""


def read(folder, text):
    (folder / COURSE_FILE).write_text(text)
    return read_course_file(folder)


def test_times_are_meant_in_the_file_s_zone(tmp_path):
    chosen = read(tmp_path, GOOD)
    assert chosen.chapters["ch01_formats"].due == datetime(2027, 3, 1, 22, 59)
    assert chosen.extensions["ada"]["ch01_formats"] == datetime(2027, 3, 5, 12)
    assert chosen.chapters["ch01_formats"].points == {"decode": 4.0}
    assert (chosen.late.percent_per_day, chosen.late.most_percent) == (10, 100)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[late]", "[late", "cannot be read"),
        ('"spring"', '"spring 2027"', "course must be letters"),
        ('"spring"', '"../x"', "course must be letters"),
        ('"spring"', "7", "course must be a text"),
        ("Europe/Berlin", "Mars/Olympus", "timezone 'Mars/Olympus' is not known"),
        ("Europe/Berlin", "../../etc/passwd", "timezone"),
        ("percent_per_day = 10", "percent_per_day = 110", "late.percent_per_day must be a number"),
        ("percent_per_day = 10", "percent_per_day = nan", "late.percent_per_day must be a number"),
        ("percent_per_day", "per_cent", "late.per_cent is not known; known are grace_minutes"),
        ("due = 2027-03-01T23:59:00", "due = 2027-03-01", "a day alone has no hour"),
        ("due = 2027-03-01T23:59:00", "dew = 2027-03-01T23:59:00", "chapters.ch01_formats.dew"),
        ("due = 2027-03-01T23:59:00", "", "has no due date that could be extended"),
        ("decode = 4", "", "must name at least one exercise"),
        ("decode = 4", "decode = -1", "points.decode must be a number of at least 0"),
        ("decode = 4", "decode = true", "points.decode must be a number"),
        ("2027-03-05T12:00:00Z", "2027-02-05T12:00:00Z", "is not after the due date"),
        ("ch01_formats = 2027", "ch02_strides = 2027", "no such chapter in the file"),
        ("[extensions.ada]", "[extension.ada]", "extension is not known"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, old, new, said):
    assert old in GOOD
    with pytest.raises(CourseError, match=said.replace(".", r"\.").replace("[", r"\[")):
        read(tmp_path, GOOD.replace(old, new))


def test_no_file_says_how_to_make_one(tmp_path):
    with pytest.raises(CourseError, match="undertorch course new"):
        read_course_file(tmp_path)
