"""`undertorch check`: the notebook's verdict in a terminal, whatever the files are like."""

import os
import re
import subprocess
import sys
import time

import nbformat
import pytest

from grader.building.kernel import run_notebook
from grader.course.course import Course
from grader.feedback.render import to_html
from grader.student import journal
from grader.verdict.verdict import Verdict
from tests.scale.course import CHAPTER, HALF, RIGHT, SQUARES

NAMED = "Your `double` ran here as well. A mistake there shows here too."
EXITS = "import os\ndef double(x):\n    os._exit(0)\n"


def test_a_whole_notebook(student):
    student.answers(double=RIGHT["double"])
    said = student.run("check", status=1)
    assert f"my/{CHAPTER}/{CHAPTER}.ipynb, saved just now" in said
    assert "passed  double  4 of 4 points" in said
    assert "not attempted  total  0 of 2 points" in said
    assert "1 of 2 exercises passed, 4 of 6 points." in said
    student.answers(**RIGHT)
    assert "2 of 2 exercises passed, 6 of 6 points." in student.run("check")


def test_a_conftest_of_someone_else_changes_nothing(tmp_path, student, monkeypatch):
    (tmp_path / "conftest.py").write_text("raise RuntimeError('for other tests')\n")
    monkeypatch.setenv("PYTEST_PLUGINS", "a_plugin_of_someone_else")
    student.answers(**RIGHT)
    assert "2 of 2 exercises passed" in student.run("check")


def test_one_exercise_in_full(student):
    student.answers(**SQUARES)
    said = student.run("check", "double", status=1)
    assert "double  failed, 0 of 4 points: Double" in said
    assert "You squared it." in said and "✗ Twice the input." in said
    student.answers(**RIGHT)
    assert "✓ Twice a negative input." in student.run("check", "double")


def test_an_answer_to_another_exercise_that_ran_is_named(student):
    leans = "def total(x):\n    return float(double(x).sum())\n"
    student.answers(double=RIGHT["double"], total=leans)
    assert NAMED in student.run("check", "total", status=1)
    assert NAMED not in student.run("check", "double")
    student.answers(double=RIGHT["double"], total=f"{leans.rstrip()} / 2\n")
    assert NAMED not in student.run("check", "total")


def test_of_a_chapter_each_exercise_shows_its_first_failure(student):
    student.answers(double="def double(x):\n    return x * 3\n")
    said = student.run("check", status=1)
    assert "✗ Twice the input." in said and "Twice a negative" not in said
    assert "1 more check failed. To see all: undertorch check double" in said


@pytest.mark.parametrize("word", [CHAPTER, f"my/{CHAPTER}", f"my/{CHAPTER}/{CHAPTER}.ipynb"])
def test_words_for_a_chapter(student, word):
    student.answers(**RIGHT)
    found = student.json("check", word)
    assert found["passed"] and found["points"] == found["max_points"] == 6
    assert [item["exercise"] for item in found["exercises"]] == ["double", "total"]


def test_several_notebooks_and_one_is_broken(student):
    student.answers(**RIGHT)
    other = student.folder / "copy.ipynb"
    other.write_text('{"nbformat": 4, "cel')
    os.utime(other)
    found = student.json("check", str(student.notebook), f"my/{CHAPTER}/copy.ipynb", status=2)
    assert found["points"] == 6 and not found["passed"]
    (error,) = found["errors"]
    assert "copy.ipynb cannot be read: the notebook is not JSON" in error and "learn" in error


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("doubel", "Did you mean double?"),
        ("nowhere.ipynb", "There is no notebook nowhere.ipynb."),
        ("double.py", "There is no file double.py."),
    ],
)
def test_what_is_not_there(student, word, said):
    assert said in student.run("check", word, status=2)
    assert said in student.json("check", word, status=2)["error"]


def test_a_missing_notebook_says_how_to_get_it(student):
    student.notebook.unlink()
    assert "learn --no-open" in student.run("check", CHAPTER, status=2)
    assert "holds no notebook" in student.run("check", status=2)


def test_outside_any_folder(student, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "`undertorch learn` makes one" in student.run("check", status=2)


def test_inside_the_chapters_folder(student, monkeypatch):
    monkeypatch.chdir(student.folder)
    student.answers(**RIGHT)
    assert f"{CHAPTER}.ipynb, saved" in student.run("check").splitlines()[0]
    assert student.json("check", "double")["passed"]


def test_code_that_ends_its_process_ends_no_other(student):
    student.answers(double=EXITS, total=RIGHT["total"])
    first, second = student.json("check", status=1)["exercises"]
    assert first["outcome"] == "crashed" and second["outcome"] == "passed"


def test_a_file_counts_while_the_cell_is_not_written(student):
    script = '\nif __name__ == "__main__":\n    raise SystemExit("ran as a script")\n'
    (student.folder / "double.py").write_text(RIGHT["double"] + script)
    (found,) = student.json("check", "double")["exercises"]
    assert found["file"].endswith("double.py") and "was graded" in found["notes"][0]
    assert student.run("check", "double").startswith(f"my/{CHAPTER}/double.py, saved just now")
    student.answers(double="from double import double")
    assert student.json("check", f"my/{CHAPTER}/double.py")["points"] == 4
    student.answers(double=SQUARES["double"])
    (found,) = student.json("check", "double", status=1)["exercises"]
    assert found["file"].endswith(".ipynb") and "The cell in the notebook" in found["notes"][0]


def test_a_file_alone_is_enough(student):
    (student.folder / "double.py").write_text(RIGHT["double"])
    student.notebook.unlink()
    (found,) = student.json("check", "double")["exercises"]
    assert found["points"] == 4 and f"`{CHAPTER}.ipynb` is not there." in found["notes"]


def test_an_answer_graded_in_the_notebook_and_not_saved(student):
    student.answers(**SQUARES)
    graded = Verdict("double", "Double", 4.0, 4.0, "passed")
    entry = journal.verdict_entry(CHAPTER, graded, RIGHT["double"], "notebook")
    journal.write(student.my, [entry])
    os.utime(student.notebook, (time.time() - 60,) * 2)
    said = student.run("check", "double", status=1)
    assert "saved 1 minute ago" in said
    assert "you graded another answer after this file was saved" in said
    os.utime(student.notebook, (time.time() + 60,) * 2)
    assert "after this file was saved" not in student.run("check", "double", status=1)


def test_no_colour_where_nobody_sees_it(student):
    assert "\x1b" not in student.run("check", "double", status=1)


def test_the_same_verdict_as_in_the_notebook(student, tiny):
    """HTML for HTML; and the notebook's grade cell writes the journal, too."""
    texts = {"right": RIGHT, "half": HALF, "squares": SQUARES}
    cells = ["import torch\nfrom grader import grade"]
    for sources in texts.values():
        cells += [sources["double"], 'grade("double")']
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    run_notebook(notebook, student.folder)
    there = [
        re.sub(r'<div class="ut-after">.*</div>(?=</div>)', "", cell.outputs[0].data["text/html"])
        for cell in notebook.cells[2::2]
    ]
    here = []
    for sources in texts.values():
        student.answers(double=sources["double"])
        code = 0 if sources is RIGHT else 1
        (found,) = student.json("check", "double", status=code)["exercises"]
        data = {key: found[key] for key in Verdict.__dataclass_fields__}
        here.append(to_html(Verdict.from_data(data)))
    assert here == there
    lines = [entry for entry in journal.read(student.my) if entry.kind == "verdict"]
    assert [(line.by, line.points) for line in lines] == [
        ("notebook", 4.0), ("notebook", 2.0), ("notebook", 0.0),
        ("check", 4.0), ("check", 2.0), ("check", 0.0),
    ]  # fmt: skip
    assert lines[0].answer == lines[3].answer  # the same text, judged twice
    assert Course(tiny.root).chapter_of("double").id == lines[0].chapter


def test_help_imports_no_torch():
    """Completion and --help answer at once: they run at every press of the tab key."""
    code = "import sys, grader.commands.main; sys.exit('torch' in sys.modules or 'IPython' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
