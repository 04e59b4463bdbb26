"""`undertorch locate`, and `locate` in a notebook: the line, then the part, then the change."""

import pytest

from grader.student import journal
from grader.student.help import NOTEBOOK
from grader.student.located import all_said, located
from grader.submission.variants import Variant
from grader.verdict.locate import Found

CUBES = "\n\ndef double(x):\n    y = x\n    return y * 3\n"
LONG = "--seconds=600"  # a busy machine grades few variants in 20 s


def test_the_terminal_says_more_each_time(student):
    student.answers(double=CUBES)
    said = [student.run("locate", "double", LONG) for _ in range(3)]
    assert "One change in line 5 makes every check pass." in said[0]
    assert "return y * 3" in said[0] and "y * 2" not in said[0]
    assert "In line 5, this part:" in said[1] and "y * 2" not in said[1]
    assert "+     return y * 2" in said[2]
    student.answers(double=CUBES.replace("y", "z"))
    assert "z * 2" not in student.run("locate", "double", LONG)  # another answer: the line first
    kinds = [entry.kind for entry in journal.read(student.my)]
    assert kinds == ["locate"] * 4


def test_a_file_beside_the_notebook(student):
    (student.folder / "double.py").write_text(CUBES)
    assert "line 5" in student.run("locate", str(student.folder / "double.py"), LONG)


def test_what_needs_no_search(student):
    assert "still holds its stub" in student.run("locate", "double", status=1)
    student.answers(double="def double(x):\n    return x * 2\n")
    assert "Every check passes" in student.run("locate", "double", status=1)
    assert "No notebook, chapter or exercise" in student.run("locate", "doubel", status=2)
    assert "Say which exercise" in student.run("locate", status=2)


def variant(line):
    return Variant(line, "a", f"was {line}", f"now {line}", "")


def test_two_lines_are_both_named(tmp_path):
    found = Found((variant(3), variant(5)), 7, 1.0)
    page = located(found, "tiny", "double", "x", tmp_path, NOTEBOOK)
    assert page.parts[0][1] == "One change in line 3 or in line 5 makes every check pass."
    assert "+ now 3" in all_said(found) and "+ now 5" in all_said(found)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Found(tried=9, seconds=20.0), 'To look longer: `locate("double", seconds=60)`'),
        (Found(tried=9, all_tried=True), "No small change makes every check pass"),
        (Found(tried=1, interrupted=True), "Stopped. Of 1 small change"),
    ],
)
def test_nothing_found_says_what_was_tried(found, said, tmp_path):
    page = located(found, "tiny", "double", "x", tmp_path, NOTEBOOK)
    assert said in page.parts[0][1] and not page.granted
    assert journal.recall(tmp_path) == []
