"""A box that is killed while it grades costs nobody a point."""

import json
import os
import signal

import psutil
import pytest

from grader.building.sample import fill, reference_sources
from grader.course.cells import grade_id_of
from grader.course.course import Course
from grader.evidence.outcome import Outcome
from grader.evidence.wire.channel import receive_frame
from grader.nbgrader.run import Run, Terms, grade_notebook
from tests import ROOT

TWO = {"decode-grade", "round_to_bf16-grade"}


@pytest.fixture
def run():
    chapter = Course(ROOT).chapter("ch01_formats")
    run = Run(chapter, Terms(5), chapter.notebook)
    run.start()
    yield run
    run.close()


def graded(run, folder, open_for):
    path = folder / "formats.ipynb"
    path.write_text(json.dumps(fill(run.chapter, reference_sources(run.chapter))))
    node = run.reader.take(path, "ada", [])
    node.cells = [
        cell
        for cell in node.cells
        if not (grade_id_of(cell) or "").endswith("-grade") or grade_id_of(cell) in TWO
    ]
    return grade_notebook(run, node, open_for).verdicts


def warm_below(first):
    """Return the process that forks children: above them, below those that make the box."""
    return next(p for p in first.children(recursive=True) if p.name() != first.name())


@pytest.mark.parametrize(
    ("who", "when"),
    [
        ("bubblewrap", "before a child is opened"),
        ("the warm process", "before a child is opened"),
        ("bubblewrap", "while a child is asked"),
    ],
)
def test_a_killed_box_is_replaced_and_the_exercise_graded(run, tmp_path, monkeypatch, who, when):
    killed = []

    def kill():
        first = psutil.Process(run._box._started.process.pid)
        target = first if who == "bubblewrap" else warm_below(first)
        dying = [target, *target.children(recursive=True)]
        killed.append(target.pid)
        os.kill(target.pid, signal.SIGKILL)
        psutil.wait_procs(dying, timeout=300)

    def receive(sock, deadline):
        if asked and not killed:
            kill()
        return receive_frame(sock, deadline)

    def open_for(name, budget):
        if name == "round_to_bf16-grade" and not killed:
            if when == "while a child is asked":
                asked.append(name)
            else:
                kill()
        return run.open(name, budget)

    asked = []
    monkeypatch.setattr("grader.box.child.receive_frame", receive)

    verdicts = graded(run, tmp_path, open_for)
    assert killed
    assert {name: (one.outcome, one.review) for name, one in verdicts.items()} == dict.fromkeys(
        TWO, (Outcome.PASSED, "")
    )
