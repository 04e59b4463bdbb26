"""The beginnings of an exercise: each part where it belongs, and nothing that is there is touched."""

import pytest

from grader.building.scaffold import scaffold
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
