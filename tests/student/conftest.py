"""A student beside a course of one tiny chapter, and their terminal."""

import json
import sys

import nbformat
import pytest
from typer.testing import CliRunner

from grader.commands.main import app
from grader.course.course import Course, CourseError
from grader.student.fill import fill_folder
from tests.scale.course import CHAPTER, RIGHT, TinyCourse


def undertorch(*command, **environment):
    """Run a command in this process; return its exit status, all that it printed, and its output alone.

    A `CourseError` ends it as in `main`: with its message and status 2.
    """
    result = CliRunner().invoke(app, list(command), env=environment)
    refused = isinstance(result.exception, CourseError)
    if result.exception and not refused and not isinstance(result.exception, SystemExit):
        raise result.exception
    said = result.output + (str(result.exception) if refused else "")
    return 2 if refused else result.exit_code, said, result.stdout


class Student:
    """A folder `my/` filled from the course, what stands in it, and what commands answer."""

    def __init__(self, course, home):
        self.course, self.home = course, home
        self.my = home / "my"
        self.folder = self.my / CHAPTER
        self.notebook = self.folder / f"{CHAPTER}.ipynb"
        fill_folder(Course(course.root), self.my)

    def read(self):
        return nbformat.read(self.notebook, as_version=4)

    def write(self, notebook):
        nbformat.write(notebook, self.notebook)

    def answers(self, **sources):
        """Put texts into solution cells."""
        notebook = self.read()
        for cell in notebook.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id")
            if name in sources:
                cell.source = sources[name]
        self.write(notebook)

    def answer(self, exercise):
        """Return the text of a solution cell."""
        (cell,) = [
            cell
            for cell in self.read().cells
            if cell.metadata.get("nbgrader", {}).get("grade_id") == exercise
        ]
        return cell.source

    def run(self, *command, status=0):
        """Run `undertorch` with these words in this process; return all that it printed."""
        ended, said, _ = undertorch(*command)
        assert ended == status, said
        return said

    def json(self, *command, status=0):
        """Run it with --json; return the data."""
        ended, said, output = undertorch(*command, "--json")
        assert ended == status, said
        return json.loads(output)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """The course, for tests that do not change it."""
    return TinyCourse(tmp_path_factory.mktemp("course"))


@pytest.fixture
def at_home(tmp_path, monkeypatch):
    """Return a function that makes a student of a course, at their desk."""

    def sit_down(course):
        monkeypatch.setenv("UNDERTORCH_COURSE", str(course.root))
        monkeypatch.setenv("COLUMNS", "100")
        for name in RIGHT:  # pytest would take a check file of the same name for this one
            monkeypatch.delitem(sys.modules, f"test_{name}", raising=False)
        home = tmp_path / "home"
        home.mkdir()
        monkeypatch.chdir(home)
        return Student(course, home)

    return sit_down


@pytest.fixture
def student(tiny, at_home):
    return at_home(tiny)
