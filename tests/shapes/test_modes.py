"""The same answers get the same verdicts in a live notebook, from the shell, and in nbgrader's box.

Each exercise of the example course stands for one shape of thing that must cross as plain data.
Each of its known answers is graded in every mode, by the files of one course.
"""

import copy
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from html import unescape

import nbformat
import pytest

from grader.building.kernel import run_notebook
from grader.building.sample import fill, hand_in, reference_sources
from grader.course.answers import Role, read_answers
from grader.course.cells import source_of
from tests.forked import Forked

SHAPES = {
    "transposed": "a view",
    "clamp_in_place": "an in-place change",
    "ActivationRecorder": "a Module with hooks",
    "grad_off": "a context manager",
    "mapped_without_grad": "a generator",
    "Sharded": "a DataLoader with two workers",
    "OpLister": "a Dynamo backend",
    "average": "two gloo ranks",
}


@dataclass(frozen=True)
class Shown:
    """What a student reads of a verdict: the page itself, and its parts."""

    html: str
    score: str

    @property
    def outcome(self) -> str:
        return _only(r'<span class="ut-outcome">(.*?)</span>', self.html)

    @property
    def text(self) -> str:
        """The page as it was before it was escaped."""
        return unescape(re.sub(r"</?code>", "`", self.html))

    @property
    def diagnosis(self) -> str:
        found = re.findall(r'<p class="ut-diagnosis">(.*?)</p>', self.text)
        return found[0] if found else ""

    @property
    def checks(self) -> list[tuple[str, str]]:
        """Pairs of rubric line and state."""
        found = re.findall(
            r'aria-label="([\w ]+)">.</span> <span class="ut-rubric">(.*?)</span>', self.html
        )
        return [(re.sub(r"</?code>", "`", unescape(rubric)), state) for state, rubric in found]


def _only(pattern, text):
    (found,) = re.findall(pattern, text)
    return found


def shown(cell):
    """Return the verdict in a grade cell's output."""
    outputs = cell[
        "outputs"
    ]  # a kernel displays the verdict and gives the points; nbgrader has one
    html, score = (
        source_of({"source": output["data"][kind]})
        for output, kind in ((outputs[0], "text/html"), (outputs[-1], "text/plain"))
    )
    assert "<style>" in html
    html = re.sub(r"<style>.*?</style>", "", html)
    # whoever practises is alone
    return Shown(re.sub(r'<p class="ut-note">A person will look at this\..*?</p>', "", html), score)


@pytest.fixture(scope="module")
def answers(chapter):
    """Every answer to every exercise: `(exercise, name)` to role, explanation and source."""
    found = {}
    for exercise in chapter.exercises:
        found[exercise.id, "stub"] = ("stub", "", exercise.stub)
        for answer in read_answers(chapter, exercise):
            found[exercise.id, answer.name] = (answer.role, answer.explanation, answer.source)
    # last, because a live session works on with what it defined last
    references = reference_sources(chapter)
    return found | {
        (name, "reference"): ("reference", "", text) for name, text in references.items()
    }


@pytest.fixture(scope="module")
def students(answers):
    """The least number of students who hand in every answer: `number` to exercise to answer's name."""
    columns: list[dict[str, str]] = []
    for exercise in SHAPES:
        for row, name in enumerate(name for of, name in answers if of == exercise):
            if row == len(columns):
                columns.append({})
            columns[row][exercise] = name
    for column in columns:
        for exercise in SHAPES:
            column.setdefault(exercise, "reference")
    return columns


@pytest.fixture(scope="module")
def live(chapter, answers):
    """A kernel's verdicts: one session in which every answer is tried, one after the other."""
    cells, places = [], {}
    for raw in chapter.notebook["cells"]:
        role = raw["metadata"].get("nbgrader", {})
        if not role.get("solution"):
            if not role.get("grade"):
                cells.append(raw)
            continue
        for (exercise, name), (_, _, source) in answers.items():
            if exercise == role["grade_id"]:
                cells.append(_code(source))
                places[exercise, name] = len(cells)
                cells.append(_code(f'grade("{exercise}")'))
    notebook = nbformat.from_dict({**chapter.notebook, "cells": copy.deepcopy(cells)})
    # the stub of a class raises when its cell is run
    run_notebook(notebook, chapter.released.parent, allow_errors=True)
    return {answer: shown(notebook.cells[place]) for answer, place in places.items()}


def _code(source):
    return nbformat.v4.new_code_cell(source)


@pytest.fixture(scope="module")
def box(chapter, answers, students):
    """The verdicts of plain `nbgrader autograde`."""
    notebooks = {f"student-{n}": _submission(chapter, answers, s) for n, s in enumerate(students)}
    hand_in(chapter, notebooks)
    run = Forked(chapter.root, ("nbgrader", "autograde", chapter.id))
    said = run.said_until_end()
    assert run.status == 0, said
    verdicts = {}
    for number, student in enumerate(students):
        folder = chapter.root / "autograded" / f"student-{number}" / chapter.id
        graded = json.loads((folder / f"{chapter.name}.ipynb").read_text())
        for cell in graded["cells"]:
            role = cell["metadata"].get("nbgrader", {})
            if role.get("grade"):
                exercise = role["grade_id"].removesuffix("-grade")
                verdicts[exercise, student[exercise]] = shown(cell)
    return verdicts


def _submission(chapter, answers, student):
    sources = {exercise: answers[exercise, name][2] for exercise, name in student.items()}
    return json.dumps(fill(chapter, sources))


def shell(chapter, answers, student, folder):
    """Return what pytest says of each check of a notebook: `(exercise, check)` to its failure."""
    notebook, report = folder / "mine.ipynb", folder / "report.xml"
    notebook.write_text(_submission(chapter, answers, student))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--junitxml={report}",
    ]
    command += [str(chapter.graders), "--submission", str(notebook), "--rootdir", str(folder)]
    environment = os.environ | {"PYTEST_ADDOPTS": ""}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    cases = ElementTree.parse(report).getroot().iter("testcase")
    return {
        (case.get("classname", "").split("test_", 1)[1], case.get("name")): [
            problem.get("message", "") for problem in case
        ]
        for case in cases
    }


def test_every_shape_is_there(chapter):
    assert [exercise.id for exercise in chapter.exercises] == list(SHAPES)


@pytest.mark.parametrize("exercise", SHAPES)
def test_live_and_boxed_verdicts_are_identical(exercise, answers, live, box):
    for key in answers:
        if key[0] == exercise:
            assert (live[key].score, live[key].html) == (box[key].score, box[key].html), key


@pytest.mark.parametrize("exercise", SHAPES)
def test_every_answer_gets_what_it_must(exercise, chapter, answers, live):
    full = repr(chapter.exercise(exercise).points)
    for (of, name), (role, explanation, _) in answers.items():
        if of != exercise:
            continue
        verdict = live[of, name]
        if role in ("reference", Role.ALTERNATE):
            assert (verdict.outcome, verdict.score) == ("passed", full), (name, verdict.html)
        elif role is Role.MISTAKE:
            assert verdict.outcome == "failed", name
            assert verdict.diagnosis == explanation, name
            assert float(verdict.score) < float(full), name
        else:
            expected = "blocked" if role is Role.BLOCKED else "not attempted"
            assert (verdict.outcome, verdict.score) == (expected, "0.0"), name


def test_the_notebook_as_a_student_gets_it_runs_in_a_kernel(chapter):
    """Building executed it, with the reference in it."""
    notebook = json.loads(chapter.reference.read_text())
    graded = [
        cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("grade")
    ]
    assert [shown(cell).outcome for cell in graded] == ["passed"] * len(SHAPES)


@pytest.mark.parametrize("name", ["first mistakes", "references"])
def test_the_shell_agrees(name, chapter, answers, students, live, tmp_path):
    chosen = {}
    for exercise in SHAPES:
        mistakes = [
            n for (of, n), (role, _, _) in answers.items() if (of, role) == (exercise, Role.MISTAKE)
        ]
        chosen[exercise] = mistakes[0] if name == "first mistakes" else "reference"
    said = shell(chapter, answers, chosen, tmp_path)
    for exercise, answer in chosen.items():
        here = [problems for (of, _), problems in said.items() if of == exercise]
        verdict = live[exercise, answer]
        assert len(here) == len(verdict.checks)
        for problems, (rubric, state) in zip(here, verdict.checks, strict=True):
            if state != "not run":  # pytest goes on after a failed gate
                assert bool(problems) == (state == "failed"), (exercise, rubric, problems)
            for problem in problems:
                what = problem.partition(": ")[2].split("\n")[0]
                assert state == "not run" or what in verdict.text, (exercise, problem)
