"""A course of one tiny chapter, a class for it, and what is known of a submission afterwards."""

import copy
import json
import os
import sqlite3
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import suppress
from pathlib import Path

import nbformat
from jupyter_core.application import NoStart
from nbgrader.apps import AutogradeApp, NbGraderApp

from grader import cli
from grader.authoring.source import read_source
from grader.core.store import Store
from grader.nbgrader import commands_on_path
from grader.nbgrader.commands import grade_chapter, regrade_chapter  # noqa: F401 (imported once)

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
# %% mistake: squares
# You squared it.
def double(x):
    return x * x
"""

RIGHT = {
    "double": "def double(x):\n    return x * 2\n",
    "total": "def total(x):\n    return float(x.sum())\n",
}
HALF = {**RIGHT, "double": "def double(x):\n    return x.abs() * 2\n"}
SQUARES = {**RIGHT, "double": "def double(x):\n    return x * x\n"}
LOOPS = {**RIGHT, "double": "def double(x):\n    while True:\n        pass\n"}


class Forked:
    """A command in a fork of this process, which has all imported: that takes 4 s each time."""

    def __init__(self, root, command):
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (as long as we live)
        self.status = None
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                status = self._run(root, *command)
            except SystemExit as end:
                if isinstance(end.code, str):
                    print(end.code, file=sys.stderr)  # as the interpreter would
                status = end.code if isinstance(end.code, int) else bool(end.code)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(status)

    def _run(self, root, name, *arguments):
        os.dup2(self._log.fileno(), 1)
        os.dup2(self._log.fileno(), 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
        os.chdir(root)
        os.environ.pop("UNDERTORCH_COURSE", None)
        commands_on_path()
        if name == "undertorch":
            cli.app(list(arguments))
        warnings.simplefilter("ignore")
        AutogradeApp.clear_instance()  # of a test that graded in our process
        app = NbGraderApp.subcommands[arguments[0]][0].instance()
        app.initialize(list(arguments[1:]))
        with suppress(NoStart):  # a subcommand was started in its place
            app.start()
        return 0

    def poll(self):
        """Return the exit status, or None while it runs."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def send_signal(self, number):
        os.kill(self.pid, number)

    def said_until_end(self):
        """Wait for the end; return what was printed."""
        deadline = time.monotonic() + 120
        while self.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        self._log.seek(0)
        return self._log.read()


class TinyCourse:
    """The course in a folder, and what tests ask of it."""

    def __init__(self, root):
        self.root = root
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
        self._write(f"grader/{CHAPTER}/probes.py", PROBES)
        self.checks("double", DOUBLE)
        self.checks("total", TOTAL)
        self._write(f"grader/{CHAPTER}/answers/double.py", MISTAKES)
        config = (ROOT / "nbgrader_config.py").read_text()
        self._write("nbgrader_config.py", config + "\nget_config().GradeInBox.seed = 7\n")

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

    def rows(self, *ignore):
        """Return all that the gradebook says of grades, comments, penalties, by names."""
        with sqlite3.connect(self.root / "gradebook.db") as base:
            grades = base.execute(
                "SELECT sa.student_id, c.name, g.auto_score, g.manual_score, g.needs_manual_grade,"
                " sn.late_submission_penalty, sa.timestamp"
                " FROM grade g JOIN base_cell c ON g.cell_id = c.id"
                " JOIN submitted_notebook sn ON g.notebook_id = sn.id"
                " JOIN submitted_assignment sa ON sn.assignment_id = sa.id ORDER BY 1, 2"
            ).fetchall()
            comments = base.execute(
                "SELECT sa.student_id, c.name, m.auto_comment, m.manual_comment"
                " FROM comment m JOIN base_cell c ON m.cell_id = c.id"
                " JOIN submitted_notebook sn ON m.notebook_id = sn.id"
                " JOIN submitted_assignment sa ON sn.assignment_id = sa.id ORDER BY 1, 2"
            ).fetchall()
            students = base.execute("SELECT id FROM student ORDER BY 1").fetchall()
        return grades, comments, students

    def scores(self):
        """Return the automatic scores that the gradebook has, by student and grade cell."""
        if not (self.root / "gradebook.db").exists():
            return {}
        grades = self.rows()[0]
        return {(student, cell): score for student, cell, score, *_ in grades if score is not None}

    def record(self, student):
        return Store(self.root, student, CHAPTER).read()

    def execute(self, statement, *values):
        """Change the gradebook as a formgrader would."""
        with sqlite3.connect(self.root / "gradebook.db") as base:
            base.execute(statement, values)

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
        """Return every file below a folder with its bytes and mode."""
        return {
            str(path.relative_to(self.root)): (path.read_bytes(), path.stat().st_mode)
            for path in sorted((self.root / folder).rglob("*"))
            if path.is_file()
        }
