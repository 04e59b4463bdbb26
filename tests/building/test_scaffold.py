"""The beginnings of an exercise: each part where it belongs, and nothing that is there is touched."""

import re
import shutil
import subprocess

import pytest

from grader.building.scaffold import scaffold
from grader.building.source import read_source
from grader.building.sources import cards_in
from grader.course.course import Course, CourseError
from grader.inside.probe import load_probes

CHAPTER = "ch09_more"


@pytest.fixture(params=["", "halve", "other"])
def course(request, tmp_path):
    """A course whose chapter has no probes yet, or a module of the exercise's name, or another."""
    source = tmp_path / "solutions" / CHAPTER / "more.pct.py"
    source.parent.mkdir(parents=True)
    source.write_text("# %% [markdown]\n# # More\n")
    if request.param:
        probes = tmp_path / "grader" / CHAPTER / "probes"
        probes.mkdir(parents=True)
        (probes / "__init__.py").write_text("")
        (probes / f"{request.param}.py").write_text("from grader import probe\n")
    return Course(tmp_path)


def test_a_new_exercise_has_a_probe_that_loads(course):
    written = scaffold(course, CHAPTER, "halve").files
    assert all(path.is_file() for path in written)
    assert list(load_probes(course.root / "grader" / CHAPTER / "probes")) == ["halve_result"]


def test_what_is_there_is_not_written_again(course):
    before = {path: path.read_text() for path in scaffold(course, CHAPTER, "halve").files}
    with pytest.raises(CourseError, match="halve is there already"):
        scaffold(course, CHAPTER, "halve")
    assert {path: path.read_text() for path in before} == before


HEAD = """# %% [markdown] chapter="ch09_more"
# title: More
# summary: A chapter for the tests of scaffolds.
"""

HEADING = "\n# %% [markdown]\n# ## What comes next\n"


@pytest.fixture
def three(course):
    """A course with three exercises, and a heading before the third."""
    source = course.root / "solutions" / CHAPTER / "more.pct.py"
    source.write_text(HEAD)
    for name in ("one", "two"):
        scaffold(course, CHAPTER, name)
    source.write_text(source.read_text() + HEADING)
    scaffold(course, CHAPTER, "three")
    return course, source


@pytest.mark.parametrize(
    ("after", "cards"),
    [
        ("one", ["one", "halve", "two", "three"]),
        ("two", ["one", "two", "halve", "three"]),
        ("three", ["one", "two", "three", "halve"]),
        ("", ["one", "two", "three", "halve"]),
    ],
)
def test_a_section_stands_after_another(three, after, cards):
    course, source = three
    written = scaffold(course, CHAPTER, "halve", after)
    assert cards_in(source) == cards and written.after == (after or "three")
    text = source.read_text()
    assert (text.index("What comes next") < text.index('"halve"')) == (after not in ("one", "two"))
    assert ")\n# %%" not in text
    read_source(source)  # it is whole
    ruff = shutil.which("ruff")
    if ruff:
        formatted = [ruff, "format", "--check", "--isolated", "--line-length", "100"]
        subprocess.run([*formatted, *written.files], check=True, capture_output=True)


def test_a_section_has_to_have_something_to_follow(three):
    course, source = three
    before = source.read_text()
    with pytest.raises(CourseError, match=r"no exercise 'four'\. It has: one, two, three"):
        scaffold(course, CHAPTER, "halve", "four")
    with pytest.raises(CourseError, match="no name for a function"):
        scaffold(course, CHAPTER, "class")
    assert source.read_text() == before


def test_a_chapter_without_a_source_names_those_that_have_one(course):
    with pytest.raises(CourseError, match=rf"Chapters that have one: {CHAPTER}\."):
        scaffold(course, "ch9", "halve")


def test_its_mistake_is_an_edit_of_its_solution(course):
    source, *_, answers = scaffold(course, CHAPTER, "halve").files
    (goes,) = re.findall(r"^- (.+)$", answers.read_text(), re.MULTILINE)
    assert source.read_text().count(f"    {goes}\n") == 1
