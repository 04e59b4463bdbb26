"""The example course, copied and built once per session; its notebooks for each known answer."""

import shutil
from pathlib import Path

import pytest

from grader.building.build import build_chapter, install
from grader.building.sources import sources
from grader.course.course import Course

collect_ignore = ["course"]  # its checks are no tests of ours: they judge submissions


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """The example course with its notebooks built; building runs the reference in a kernel."""
    root = tmp_path_factory.mktemp("shapes") / "course"
    shutil.copytree(Path(__file__).parent / "course", root)
    made = Course(root)
    for source in sources(made):
        install(made, build_chapter(made, source))
    return made


@pytest.fixture(scope="session")
def chapter(course):
    return course.chapter("ch00_shapes")
