"""A student in `jupyter console`: a front end that shows text and nothing else."""

import os
import sys

import pexpect
import pytest

from tests.jupyter import at_home

PATIENCE = 300


@pytest.fixture
def console(student):
    """Return a function that runs a line in a console of 80 columns, and gives what that shows."""
    quiet = {"TERM": "dumb", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    process = pexpect.spawn(
        sys.executable,
        ["-m", "jupyter", "console", "--simple-prompt", "--kernel=python3"],
        cwd=str(student.folder),
        env=os.environ | at_home(student.home / "jupyter") | quiet,
        dimensions=(50, 80),
        timeout=PATIENCE,
        encoding="utf-8",
    )
    process.expect(r"In \[\d+\]: ")

    def run(line):
        process.sendline(line)
        process.expect(r"In \[\d+\]: ")
        return process.before.partition("\n")[2].replace("\r", "").strip()

    yield run
    process.close(force=True)


def test_a_verdict_is_text(console):
    console("from grader import grade, solution")
    assert "not run yet, 0 of 4 points: Double\n" in console('grade("double")')
    console("double = lambda x: x.abs() * 2")
    said = console('grade("double")')
    assert said.startswith("failed, 2 of 4 points: Double\n")
    assert "  What came is the negative of what was expected.\n" in said
    assert "  ✓ Twice the input.\n" in said
    assert "  ✗ Twice a negative input.\n" in said and "Out[" not in said
    assert "return x * 2" in console("solution()")
