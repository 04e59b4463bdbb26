"""The example course, copied and built once per session; its notebooks for each known answer."""

import shutil
from pathlib import Path

import pytest

from grader.building.build import build_chapter, install
from grader.building.sources import sources
from grader.course.course import Course
from grader.proving.prove import known_marks
from grader.verdict.known import made_on, write_known

collect_ignore = ["course"]  # its checks are no tests of ours: they judge submissions


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """The example course with its notebooks built; building runs the reference in a kernel."""
    root = tmp_path_factory.mktemp("shapes") / "course"
    shutil.copytree(Path(__file__).parent / "course", root)
    made = Course(root)
    for source in sources(made):
        install(made, build_chapter(made, source))
    for chapter in made.chapters():
        for exercise in chapter.exercises:  # as `undertorch prove` does
            write_known(chapter, exercise.id, known_marks(chapter, exercise), made_on())
    return made


@pytest.fixture(scope="session")
def chapter(course):
    return course.chapter("ch00_shapes")
