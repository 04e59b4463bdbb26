"""`grade` in a real kernel: what a student sees, from the stub to full marks, slips included."""

import re
from html import unescape

import nbformat
import pytest

from grader.building.kernel import run_notebook
from grader.building.sample import answers_of, reference_sources
from grader.course.answers import Role
from grader.course.course import Course
from tests import ROOT

CHAPTER = Course(ROOT).chapter("ch01_formats")
RIGHT = reference_sources(CHAPTER)["round_to_bf16"]
TRUNCATES = answers_of(CHAPTER, Role.MISTAKE)["round_to_bf16"]
GRADE = 'grade("round_to_bf16")'

SESSION = {
    "missing": "",
    "stub": CHAPTER.exercise("round_to_bf16").stub,
    "wrong": TRUNCATES,
    "right": RIGHT,
    "returns nothing": "def round_to_bf16(x):\n    x.view(torch.int32)",
    "prints": "def round_to_bf16(x):\n    print(x.shape)",
    "misspelt": "del round_to_bf16\ndef round_bf16(x):\n    return x",
    "no import": RIGHT.replace("torch.where", "missing_module.where"),
    "raises": "def round_to_bf16(x):\n    bits = [1, 2]\n    return bits[7]",
    "torch has none": "def round_to_bf16(x):\n    return x.to(torch.float8_e5m2).sum()",
    "built in": "def round_to_bf16(x):\n    return x.to(torch.bfloat16)",
    "alias": "halve = torch.Tensor.bfloat16\ndef round_to_bf16(x):\n    return halve(x)",
    "beside": RIGHT + "\nassert torch.tensor(1.0).to(torch.bfloat16) == 1",
    "changes its input": "def round_to_bf16(x):\n    x.mul_(1)\n    x.zero_()\n    return x",
    "markup": "def round_to_bf16(x):\n    raise ValueError('<script>alert(1)</script>')",
}


@pytest.fixture(scope="module")
def session():
    """Run every answer in one kernel, as in an afternoon; return (points, text) by name."""
    first = "import math, torch\nfrom grader import grade"
    cells = [nbformat.v4.new_code_cell(first)]
    for source in SESSION.values():
        cells += [nbformat.v4.new_code_cell(source), nbformat.v4.new_code_cell(GRADE)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    run_notebook(notebook, ROOT / "chapters" / "ch01_formats")
    results = {}
    for name, cell in zip(SESSION, notebook.cells[2::2], strict=True):
        verdict, result = cell.outputs
        html = verdict.data["text/html"]
        text = unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", re.sub(r"</?code>", "`", html)))
        results[name] = float(result.data["text/plain"]), " ".join(text.split()), html
    return results


@pytest.mark.parametrize(
    ("name", "points", "said"),
    [
        ("missing", 0, "not run yet"),
        ("stub", 0, "not attempted"),
        ("wrong", 0, "You dropped the lower sixteen bits"),
        ("right", 6, "passed"),
        ("returns nothing", 0, "Did you forget a `return`?"),
        ("prints", 0, "`print` shows a value; `return` hands it back."),
        ("misspelt", 0, "You define `round_bf16`: is that a slip?"),
        ("no import", 0, "Is an import missing?"),
        ("raises", 0, "IndexError: list index out of range in round_to_bf16, line 3"),
        ("torch has none", 0, """NotImplementedError: "sum_cpu" not implemented for"""),
        ("built in", 0, "blocked"),
        ("alias", 0, "blocked"),
        ("beside", 6, "passed"),
        ("changes its input", 0, "changed its input `x` in place"),
        ("markup", 0, "<script>alert(1)</script>"),
    ],
)
def test_what_a_student_sees(session, name, points, said):
    got, text, _ = session[name]
    assert got == points
    assert said in text


def test_nothing_of_a_student_becomes_markup(session):
    assert "<script>" not in session["markup"][2]


def test_nobody_else_looks_at_what_is_practised(session):
    assert "Off limits here" in session["built in"][1]
    assert not [name for name, (_, text, _) in session.items() if "A person will look" in text]
