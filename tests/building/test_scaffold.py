"""The beginnings of an exercise: each part where it belongs, and nothing that is there is touched."""

import re

import pytest

from grader.building.scaffold import scaffold
from grader.course.course import Course, CourseError, probes_in
from grader.inside.probe import load_probes

CHAPTER = "ch09_more"


@pytest.fixture(params=["probes.py", "probes/__init__.py"])
def course(request, tmp_path):
    """A course whose chapter keeps its probes in a file, or in a package."""
    source = tmp_path / "solutions" / CHAPTER / "more.pct.py"
    probes = tmp_path / "grader" / CHAPTER / request.param
    for path in (source, probes):
        path.parent.mkdir(parents=True, exist_ok=True)
    source.write_text("# %% [markdown]\n# # More\n")
    probes.write_text("from grader import probe\n")
    return Course(tmp_path)


def test_a_new_exercise_has_a_probe_that_loads(course):
    written = scaffold(course, CHAPTER, "halve")
    assert all(path.is_file() for path in written)
    assert list(load_probes(probes_in(course.root / "grader" / CHAPTER))) == ["halve_result"]


def test_what_is_there_is_not_written_again(course):
    before = {path: path.read_text() for path in scaffold(course, CHAPTER, "halve")}
    with pytest.raises(CourseError, match="halve is there already"):
        scaffold(course, CHAPTER, "halve")
    assert {path: path.read_text() for path in before} == before


def test_its_mistake_is_an_edit_of_its_solution(course):
    source, *_, answers = scaffold(course, CHAPTER, "halve")
    (goes,) = re.findall(r"^- (.+)$", answers.read_text(), re.MULTILINE)
    assert source.read_text().count(f"    {goes}\n") == 1
