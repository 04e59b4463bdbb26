"""A course of one tiny chapter, a class for it, and what is known of a submission afterwards."""

import copy
import json
import time
from pathlib import Path

import nbformat
from nbgrader.api import (
    BaseCell,
    Comment,
    Grade,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy import NullPool, create_engine, inspect, select, text

from grader.building.source import read_source
from grader.evidence.store import SECONDS, Store
from tests.forked import Forked

ROOT = Path(__file__).parents[2]
CHAPTER = "tiny"

PROBES = """
from grader import probe


@probe
def doubled(student, x):
    return student.double(x)


@probe
def totalled(student, x):
    return student.total(x)
"""

DOUBLE = '''
"""Checks of `double`."""

import pytest
import torch

from grader import assert_equal, assert_same_bits


@pytest.fixture
def x(rng):
    return torch.randint(1, 100, (5,), generator=rng)


def test_values(doubled, x):
    """Twice the input."""
    assert_same_bits(doubled.value, x * 2)


def test_negative(doubled, x):
    """Twice a negative input."""
    assert_same_bits(doubled.ask(-x).value, -x * 2)
'''

TOTAL = '''
"""Checks of `total`."""

import torch

from grader import assert_equal


def test_sum(totalled, rng):
    """The sum."""
    x = torch.randint(1, 100, (4,), generator=rng)
    assert_equal(totalled.ask(x).value, float(x.sum()))
'''

MISTAKES = """
## mistake: squares
You squared it.

```python
def double(x):
    return x * x
```
"""

EARLY, LATE = "2029-01-02 10:00:00 UTC", "2031-01-02 10:00:00 UTC"
"""When students hand in: before and after 2030."""

RIGHT = {
    "double": "def double(x):\n    return x * 2\n",
    "total": "def total(x):\n    return float(x.sum())\n",
}
HALF = {**RIGHT, "double": "def double(x):\n    return x.abs() * 2\n"}
SQUARES = {**RIGHT, "double": "def double(x):\n    return x * x\n"}
LOOPS = {**RIGHT, "double": "def double(x):\n    while True:\n        pass\n"}


def until(process, true, seconds=900):
    """Wait until `true()`; the process must not end before."""
    deadline = time.monotonic() + seconds
    while not true():
        assert process.poll() is None, process.said_until_end()
        assert time.monotonic() < deadline
        time.sleep(0.002)


class TinyCourse:
    """The course in a folder, and what tests ask of it."""

    def __init__(self, root, db_url=""):
        self._settle(root, db_url)
        notebook = read_source(Path(__file__).parent / "tiny.pct.py")
        self._write(f"solutions/{CHAPTER}/{CHAPTER}.ipynb", nbformat.writes(notebook))
        released = copy.deepcopy(notebook)
        for cell in released.cells:
            if "BEGIN SOLUTION" in cell.source:
                cell.source = (
                    cell.source.split("    ### BEGIN")[0] + "    raise NotImplementedError"
                )
        self.released = released
        self._write(f"chapters/{CHAPTER}/{CHAPTER}.ipynb", nbformat.writes(released))
        self._write(f"grader/{CHAPTER}/probes/__init__.py", "")
        self._write(f"grader/{CHAPTER}/probes/doubling.py", PROBES)
        self.checks("double", DOUBLE)
        self.checks("total", TOTAL)
        self._write(f"grader/{CHAPTER}/answers/double.md", MISTAKES)
        config = (ROOT / "nbgrader_config.py").read_text()
        config += "\nget_config().GradeInBox.seed = 7\n"
        if db_url:
            config += f"get_config().CourseDirectory.db_url = {db_url!r}\n"
            config += "get_config().CourseDirectory.course_id = 'tiny'\n"
        self._write("nbgrader_config.py", config)

    def _settle(self, root, db_url=""):
        """Say where the course is, and its gradebook."""
        self.root = root
        self.db_url = db_url or f"sqlite:///{root}/gradebook.db"

    def _write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def checks(self, exercise, text):
        self._write(f"grader/{CHAPTER}/test_{exercise}.py", text)

    def hand_in(self, student, sources=RIGHT, stamp="", extra=()):
        notebook = copy.deepcopy(self.released)
        for cell in notebook.cells:
            role = cell.metadata.get("nbgrader", {})
            if role.get("solution") and role["grade_id"] in sources:
                cell.source = sources[role["grade_id"]]
        folder = f"submitted/{student}/{CHAPTER}"
        self._write(f"{folder}/{CHAPTER}.ipynb", nbformat.writes(notebook))
        for name in extra:
            self._write(f"{folder}/{name}", "mine")
        if stamp:
            self._write(f"{folder}/timestamp.txt", stamp)

    def hand_in_a_class(self):
        """Eight students: right, half right and late, wrong, untouched, endless, dying, torn, empty-handed."""
        self.hand_in("ada", RIGHT, stamp=EARLY, extra=["notes.txt", "data/own.py"])
        self.hand_in("bea", HALF, stamp=LATE)
        self.hand_in("carl", SQUARES)
        self.hand_in("dora", {})
        self.hand_in("emil", LOOPS)
        self.hand_in("fred", RIGHT | {"total": "import os\nos._exit(3)\n"})
        torn = self.root / "submitted" / "gus" / CHAPTER / f"{CHAPTER}.ipynb"
        torn.parent.mkdir(parents=True)
        torn.write_text('{"cells": [')
        (self.root / "submitted" / "hana" / CHAPTER).mkdir(parents=True)

    def command(self, *command):
        """Start a command in the course; return its process."""
        return Forked(self.root, command)

    def run(self, *command, status=0):
        """Run a command to its end; return what it said."""
        process = self.command(*command)
        said = process.said_until_end()
        assert process.status == status, said
        return said

    def autograded(self, student):
        return self.root / "autograded" / student / CHAPTER / f"{CHAPTER}.ipynb"

    def all_graded(self):
        """Return the students that have an autograded notebook."""
        return sorted(
            path.parents[1].name for path in self.root.glob(f"autograded/*/{CHAPTER}/*.ipynb")
        )

    def rows(self):
        """Return all that the gradebook says of grades, comments, penalties, by names."""
        with self._base().begin() as base:
            grades = base.execute(
                select(
                    SubmittedAssignment.student_id, BaseCell.name, Grade.auto_score,
                    Grade.manual_score, Grade.needs_manual_grade,
                    SubmittedNotebook.late_submission_penalty, SubmittedAssignment.timestamp,
                ).where(*_joined(Grade))
            ).all()  # fmt: skip
            comments = base.execute(
                select(
                    SubmittedAssignment.student_id, BaseCell.name, Comment.auto_comment,
                    Comment.manual_comment,
                ).where(*_joined(Comment))
            ).all()  # fmt: skip
            students = base.execute(select(Student.id)).all()
        return (
            sorted(grades, key=_names),
            sorted(comments, key=_names),
            sorted(map(tuple, students)),
        )

    def _base(self):
        return create_engine(self.db_url, poolclass=NullPool)

    def scores(self):
        """Return the automatic scores that the gradebook has, by student and grade cell."""
        if not inspect(self._base()).has_table("grade"):
            return {}
        grades = self.rows()[0]
        return {(student, cell): score for student, cell, score, *_ in grades if score is not None}

    def record(self, student):
        return Store(self.root, student, CHAPTER).read()

    def execute(self, statement):
        """Change the gradebook as a formgrader would."""
        with self._base().begin() as base:
            base.execute(text(statement))

    def verdicts(self, student):
        return {verdict["exercise"]: verdict for verdict in self.record(student)["verdicts"]}

    def assert_whole(self, students, old_scores=None):
        """Each submission is graded (notebook, record, scores) or plainly not (no notebook)."""
        scores = self.scores()
        for student in students:
            if self.autograded(student).exists():
                text = self.autograded(student).read_text()
                assert json.loads(text) and "undertorch_intake" not in text
                assert self.record(student) is not None, student
                assert (student, "double-grade") in scores, student

    def files(self, folder):
        """Return every file below a folder with its bytes and mode; of times only the mode, for
        they differ with each run.
        """
        return {
            str(path.relative_to(self.root)): (
                b"" if path.name == SECONDS else path.read_bytes(),
                path.stat().st_mode,
            )
            for path in sorted((self.root / folder).rglob("*"))
            if path.is_file()
        }


def _joined(kind):
    """Return what joins grades or comments with their cells and submissions."""
    return (
        kind.cell_id == BaseCell.id,
        kind.notebook_id == SubmittedNotebook.id,
        SubmittedNotebook.assignment_id == SubmittedAssignment.id,
    )


def _names(row):
    return row[:2]
