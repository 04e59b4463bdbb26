"""The ledger of proofs: what makes a row stale, and what does not."""

import json
import shutil
from dataclasses import replace

import nbformat
import pytest

from grader.course import imports
from grader.course.course import Course, CourseError
from grader.proving import digest
from grader.proving.ledger import (
    FILE,
    Row,
    State,
    read_ledger,
    stale_of,
    state_of,
    turn,
    withdraw_row,
    write_rows,
)
from grader.verdict import probe_versions
from grader.verdict.known import marks_digest, rests_on
from tests import ROOT

CHAPTER = "ch01_formats"
EXERCISE = "round_to_bf16"


@pytest.fixture
def chapter(tmp_path):
    """A copy of chapter 1, whose files a test may change."""
    for name in ("chapters", "solutions", "grader"):
        shutil.copytree(ROOT / name / CHAPTER, tmp_path / name / CHAPTER)
    (tmp_path / "grader" / CHAPTER / FILE).unlink()
    return Course(tmp_path).chapter(CHAPTER)


def fresh(chapter):
    """The chapter, read again, and its exercise."""
    again = Course(chapter.root).chapter(CHAPTER)
    digest._versions.cache_clear()
    probe_versions.probe_names.cache_clear()
    digest._equivalent.cache_clear()
    imports._imported.cache_clear()
    return again, again.exercise(EXERCISE)


def row_of(chapter):
    """A row that vouches for the exercise as it is."""
    chapter, exercise = fresh(chapter)
    key = digest.exercise_digest(chapter, exercise)
    known = marks_digest(chapter, EXERCISE)
    return Row(key, digest.judges_digest(), known, digest.python_version(), 1, 6, 9, 3, 24, 2, 7)


def replaced(was, now):
    """Change a text in a file, everywhere; it must be there."""

    def change(path):
        text = path.read_text("utf-8")
        assert was in text
        path.write_text(text.replace(was, now), "utf-8")

    return change


def added(line):
    """Add a line at a file's end."""
    return lambda path: path.write_text(f"{path.read_text('utf-8')}\n\n{line}\n", "utf-8")


def with_a_cell_above(path):
    """Put a cell of the course's own above all others; each of them has another number then."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell("ABOVE = 1"))
    nbformat.write(notebook, path)


def test_a_row_holds_while_nothing_changes(chapter):
    assert state_of(*fresh(chapter), row_of(chapter)) is State.HOLDS


@pytest.mark.parametrize(
    ("file", "change", "state"),
    [
        (lambda c: c.checks(EXERCISE), added("# a remark"), State.HOLDS),
        (lambda c: c.checks("decode"), added("MORE = 1"), State.HOLDS),
        (lambda c: c.checks(EXERCISE), added("MORE = 1"), State.CHANGED),
        (lambda c: c.answers(EXERCISE), added("more"), State.CHANGED),
        (lambda c: c.released, replaced('"minutes": ', '"minutes": 1'), State.CHANGED),
        (lambda c: c.reference, replaced("0x7FFF", "0x8000"), State.CHANGED),
        (lambda c: c.reference, with_a_cell_above, State.HOLDS),
        (lambda c: c.graders / "equivalent.toml", replaced("which one", "which"), State.CHANGED),
        (
            lambda c: c.graders / "known.json",
            replaced('"round_to_bf16": {', '"round_to_bf": {'),
            State.CHANGED,
        ),
    ],
)
def test_what_belongs_to_an_exercise_makes_its_row_stale(chapter, file, change, state):
    row = row_of(chapter)
    change(file(chapter))
    assert state_of(*fresh(chapter), row) is state


def test_a_probe_makes_stale_what_asks_it(chapter):
    row = row_of(chapter)
    (path,) = [p for p in chapter.probes.glob("*.py") if "student.round_to_bf16(" in p.read_text()]
    replaced("student.round_to_bf16(", "(student).round_to_bf16(0 or ")(path)
    assert state_of(*fresh(chapter), row) is State.CHANGED


def test_what_a_notebook_keeps_of_mistakes_rests_on_what_the_row_does(chapter):
    """A probe that the checks do not ask changes neither; one that they ask changes both."""
    row, kept = row_of(chapter), rests_on(*fresh(chapter))
    (path,) = [p for p in chapter.probes.glob("*.py") if "student.round_to_bf16(" in p.read_text()]
    added("@probe\ndef another(student):\n    return student")(path)
    assert state_of(*fresh(chapter), row) is State.HOLDS
    assert rests_on(*fresh(chapter)) == kept
    replaced("student.round_to_bf16(", "(student).round_to_bf16(0 or ")(path)
    assert state_of(*fresh(chapter), row) is State.CHANGED
    assert rests_on(*fresh(chapter)) != kept


def test_no_row_vouches_for_nothing(chapter):
    assert state_of(*fresh(chapter), None) is State.CHANGED


def test_other_judges_and_another_python(chapter):
    row = row_of(chapter)
    assert state_of(*fresh(chapter), replace(row, judges="other")) is State.JUDGED_ANEW
    assert state_of(*fresh(chapter), replace(row, python="3.0")) is State.OTHER_PYTHON


def test_what_no_row_vouches_for_is_stale(chapter):
    """`prove --check`, so a release, asks for these."""
    row = row_of(chapter)
    for name, kept, said in (
        ("holds", row, None),
        ("changed", replace(row, exercise="other"), "changed"),
        ("judged anew", replace(row, judges="other"), "judged anew"),
        ("other Python", replace(row, python="3.0"), "other Python"),
    ):
        write_rows(chapter, {EXERCISE: kept})
        assert stale_of(Course(chapter.root)).get(EXERCISE) == said, name
    write_rows(chapter, {EXERCISE: row})
    added("# a remark")(chapter.checks(EXERCISE))
    assert "known.json" in stale_of(Course(chapter.root))[EXERCISE]
    stale = stale_of(Course(chapter.root))
    others = {exercise.id for exercise in chapter.exercises} - {EXERCISE}
    assert others | {CHAPTER} <= stale.keys()  # no rows; and the notebook did not run


def test_rows_are_kept_in_order_and_those_of_no_exercise_go(chapter):
    row = row_of(chapter)
    write_rows(chapter, {"sgd_step": row, "gone": row})
    write_rows(chapter, {"decode": row})
    assert list(json.loads((chapter.graders / FILE).read_text())["exercises"]) == [
        "decode",
        "sgd_step",
    ]
    assert read_ledger(chapter)["decode"] == row


def test_a_proof_that_failed_takes_the_row_away(chapter):
    row = row_of(chapter)
    write_rows(chapter, {"decode": row, "spacing": row})
    withdraw_row(chapter, "decode")
    assert list(read_ledger(chapter)) == ["spacing"]


@pytest.mark.parametrize("text", ["{", "[1]", '{"decode": {"seed": 1}}'])
def test_what_is_no_ledger_is_told(chapter, text):
    (chapter.graders / FILE).write_text(text)
    with pytest.raises(CourseError, match="is no ledger"):
        read_ledger(chapter)


@pytest.mark.parametrize("costs", [{}, {f"e{n}": n**2 for n in range(5, 25)}])
def test_everything_has_its_turn(costs):
    names = [f"e{n}" for n in range(25)]
    turns = [turn(names, count, 10, costs) for count in range(10)]
    assert set().union(*turns) == set(names)
    assert sum(map(len, turns)) == len(names)


def test_turns_cost_about_the_same():
    costs = {f"e{n}": 1.0 + (n % 7) ** 2 for n in range(160)} | {"dear": 60.0}
    names = [*costs, "unknown"]
    turns = [turn(names, count, 10, costs) for count in range(10)]
    known = [sum(costs[name] for name in names if name != "unknown") for names in turns]
    assert max(known) - min(known) <= max(37.0, sum(costs.values()) / len(costs))
