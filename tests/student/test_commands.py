"""`watch`, `progress`, `hint`, `solution` and `reset`, as a student meets them."""

import io
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from rich.console import Console

from grader.course.course import Course
from grader.course.exercise import in_hours
from grader.student import journal
from grader.student.folder import find_folder
from grader.student.hints import hints_of, reference_of
from grader.student.progress import PASSED, progress
from grader.student.tables import chapters_table
from grader.student.targets import find_targets
from grader.student.watch import Watcher
from tests import ROOT, ctrl_c
from tests.scale.course import CHAPTER, HALF, RIGHT

COMMENTED = "# mine\n" + RIGHT["double"]


def looks(watcher):
    """Return what a look finds: names of changed exercises, and troubles."""
    changed, troubles = watcher.look()
    return [name for _, names in changed for name in names], troubles


def test_watch_sees_what_changed_and_nothing_else(student, tiny):
    watcher = Watcher(find_targets(Course(tiny.root), []))
    assert looks(watcher) == ([], [])
    student.answers(double=RIGHT["double"])
    assert looks(watcher) == (["double"], [])
    os.utime(student.notebook)  # saved again as it was
    assert looks(watcher) == ([], [])
    notebook = student.read()
    notebook.cells.insert(0, nbformat.v4.new_code_cell("FACTOR = 2"))
    student.write(notebook)
    assert looks(watcher) == ([], [])  # nothing uses it
    student.answers(double="def double(x):\n    return x * FACTOR\n")
    assert looks(watcher) == (["double"], [])
    notebook = student.read()
    notebook.cells[0].source = "FACTOR = 3"
    student.write(notebook)
    assert looks(watcher) == (["double"], [])  # the answer's own cell is the same
    (student.folder / "total.py").write_text(RIGHT["total"])
    assert looks(watcher) == (["total"], [])


def test_watch_waits_for_a_file_to_be_whole(student, tiny):
    watcher = Watcher(find_targets(Course(tiny.root), []))
    watcher.look()
    student.answers(double=RIGHT["double"])
    whole = student.notebook.read_bytes()
    student.notebook.write_bytes(whole[:300])
    assert looks(watcher) == ([], [])
    names, (trouble,) = looks(watcher)
    assert not names and "is not JSON" in trouble
    assert looks(watcher) == ([], [])  # said once
    student.notebook.write_bytes(whole)
    assert looks(watcher) == (["double"], [])


def test_watch_in_a_terminal(student):
    command = [sys.executable, "-u", "-m", "grader.commands.main", "watch"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        cwd=student.home,
        preexec_fn=ctrl_c.as_in_a_shell,
    )
    try:
        assert process.stdout.readline().startswith(f"Watching {CHAPTER}.")
        student.answers(**HALF)
        said = ""
        while "total" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        assert "✗ Twice a negative input." in said
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_progress_follows_the_answers(student):
    (found,) = student.json("progress")
    assert (found["passed"], found["tried"], found["not_begun"]) == (0, 0, 2)
    student.answers(double=RIGHT["double"], total="def total(x):\n    return 0.0\n")
    assert "To check them: undertorch check" in student.run("progress")
    student.run("check", status=1)
    (found,) = student.json("progress", CHAPTER)
    assert [row["state"] for row in found["rows"]] == ["passed", "tried"]
    assert (found["points"], found["max_points"]) == (4, 6)
    student.answers(double=COMMENTED)
    assert student.json("progress")[0]["points"] == 4  # a comment changes no answer
    student.answers(double=HALF["double"])
    assert student.json("progress")[0]["rows"][0]["state"] == "not checked"
    said = student.run("progress", CHAPTER)
    assert "double" in said and "0 of 4" in said


def test_what_a_notebook_graded_since_it_was_saved_counts(student):
    saved = student.notebook.stat().st_mtime
    verdict = journal.Entry(
        "verdict", CHAPTER, "double", saved + 1, "passed", 4.0, 4.0, "an answer", "notebook"
    )
    journal.write(student.my, [verdict])
    assert student.json("progress")[0]["points"] == 4
    os.utime(student.notebook, (saved + 2, saved + 2))  # saved, and with another answer
    assert student.json("progress")[0]["rows"][0]["state"] == "not begun"


def test_the_table_fits_into_80_columns(student, monkeypatch):
    monkeypatch.setenv("UNDERTORCH_COURSE", str(ROOT))
    found = progress(Course(ROOT), find_folder(student.my))
    done = [
        replace(one, rows=tuple(replace(r, state=PASSED, points=r.max_points) for r in one.rows))
        for one in found
    ]
    assert any(one.short for one in done) and sum(one.points for one in done) > 1000
    for some in (found, done):
        said = io.StringIO()
        Console(file=said, width=80).print(chapters_table(some))
        assert "…" not in said.getvalue() and len(said.getvalue().splitlines()) == len(some) + 1


def test_sittings_and_the_short_path(student, monkeypatch):
    monkeypatch.setenv("UNDERTORCH_COURSE", str(ROOT))
    whole = student.json("progress")
    for one in whole:
        assert [name for part in one["sittings"] for name in part["exercises"]] == [
            row["exercise"] for row in one["rows"]
        ]
    said = student.run("progress")
    assert (
        f"About {in_hours(sum(one['minutes'] for one in whole))} in" in said
        and "The short path (★) is about" in said
    )
    said = student.run("progress", "ch01")
    assert "1. What do the bits of a float say?  65 minutes" in said and "decode ★" in said


def test_progress_where_files_are_broken(student):
    student.notebook.write_text("{")
    journal.write(student.my, [journal.Entry("hint", CHAPTER, "double", 0.0, number=1)])
    with (student.my / journal.STATE / "journal.jsonl").open("a") as file:
        file.write('{"kind": "verdict"\n[]\n{"kind": 3}\n\n')
    said = student.run("progress")
    assert "cannot be read: the notebook is not JSON" in said


def test_hints_one_after_the_other(student, monkeypatch):
    monkeypatch.setenv("UNDERTORCH_COURSE", str(ROOT))
    assert "you have tried none yet" in student.run("hint", status=2)
    assert "Hint 1 of 3 for decode: the fields" in student.run("hint", "decode")
    assert "Hint 2 of 3 for decode" in student.run("hint")  # the last
    assert "Hint 1 of 3" in student.run("hint", "decode", "1")
    assert "Hint 3 of 3" in student.run("hint", "decode")
    assert "seen all 3" in student.run("hint", "decode", status=1)
    assert "has 3 hints" in student.run("hint", "decode", "4", status=2)
    assert "Hint 1 of 3" in student.run("hint", "spacing")
    rows = next(one for one in student.json("progress") if one["chapter"] == "ch01_formats")["rows"]
    assert [row["hints"] for row in rows[:3]] == [3, 0, 1]


def test_every_exercise_has_hints_and_a_solution_to_show():
    for chapter in Course(ROOT).chapters():
        for exercise in chapter.exercises:
            hints = hints_of(chapter, exercise.id)
            assert [hint.number for hint in hints] == [1, 2, 3], exercise.id
            assert all(hint.title and hint.text for hint in hints)
            assert "SOLUTION" not in reference_of(chapter, exercise.id)


def test_the_solution_after_an_attempt(student):
    assert "You have not tried double yet" in student.run("solution", "double", status=1)
    student.run("check", "double", status=1)  # the stub is no attempt
    student.run("solution", "double", status=1)
    student.answers(double=HALF["double"])
    student.run("solution", "double", status=1)  # nor is what was never checked
    student.run("check", "double", status=1)
    said = student.run("solution", "double")
    assert "return x * 2" in said and "SOLUTION" not in said
    said = student.run("solution", "total", "--anyway")
    assert said.startswith("Without an attempt, then.") and "x.sum()" in said
    assert [row["solution"] for row in student.json("progress")[0]["rows"]] == [True, True]


def test_reset_keeps_what_was_written(student, tiny):
    stub = Course(tiny.root).chapter(CHAPTER).exercise("double").stub
    assert "already holds its stub" in student.run("reset", "double")
    student.answers(**HALF)
    (student.folder / "double.py").write_text(COMMENTED)
    before = student.read()
    said = student.run("reset", "double")
    assert student.answer("double") == stub
    assert student.answer("total") == HALF["total"]
    after = student.read()
    assert [cell.id for cell in after.cells] == [cell.id for cell in before.cells]
    kept = sorted(path.read_text() for path in (student.my / "kept" / CHAPTER).iterdir())
    assert kept == sorted([HALF["double"], COMMENTED])
    assert said.count("Your text is kept: my/kept/tiny/double-") == 2
    assert not (student.folder / "double.py").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"nbformat": 3, "worksheets": []}'])
def test_reset_changes_no_broken_notebook(student, text):
    student.notebook.write_text(text)
    assert "Nothing was changed" in student.run("reset", "double", status=2)
    assert student.notebook.read_text() == text


def test_reset_of_a_cell_that_is_gone(student):
    notebook = student.read()
    notebook.cells = [
        cell
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade_id") != "double"
    ]
    student.write(notebook)
    assert "undertorch update" in student.run("reset", "double", status=2)


UNDERTORCH = Path(sys.executable).with_name("undertorch")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    """The shell's own way to ask: what begins with `pro`?"""
    words = {"COMP_WORDS": "undertorch pro", "COMP_CWORD": "1"}
    fish = {"_TYPER_COMPLETE_ARGS": "undertorch pro", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    ask = {"_UNDERTORCH_COMPLETE": f"complete_{shell}"} | words | fish
    said = subprocess.run([UNDERTORCH], env=os.environ | ask, capture_output=True, text=True)
    assert "progress" in said.stdout


def test_completion_knows_exercises_and_chapters(student):
    words = {"COMP_WORDS": "undertorch hint dou", "COMP_CWORD": "2"}
    environment = os.environ | {"_UNDERTORCH_COMPLETE": "complete_bash"} | words
    said = subprocess.run([UNDERTORCH], env=environment, capture_output=True, text=True)
    assert said.stdout.split() == ["double"]
