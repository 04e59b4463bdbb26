"""One submission whose every exercise takes long must not hold the class up."""

import json
import time
from dataclasses import replace

import pytest

from grader.building.sample import fill, reference_sources
from grader.course.course import Course
from grader.evidence.outcome import Ended, Outcome
from grader.nbgrader import stopwatch
from grader.nbgrader.run import Run, Terms, grade_notebook
from tests import ROOT


class Hangs:
    """Stands in for a child whose code gives no answer: each is waited for a little."""

    def ask(self, request, watch=False):
        time.sleep(0.03)
        raise Ended(Outcome.TIMED_OUT, "Your code gave no answer.")

    def close(self):
        pass


@pytest.fixture
def run():
    chapter = Course(ROOT).chapter("ch01_formats")
    run = Run(chapter, Terms(5), chapter.notebook)
    yield run
    run.close()


def test_who_takes_long_again_and_again_is_waited_for_less(run, tmp_path, monkeypatch):
    monkeypatch.setattr(stopwatch, "ENOUGH", 0.05)
    path = tmp_path / "formats.ipynb"
    path.write_text(json.dumps(fill(run.chapter, reference_sources(run.chapter))))
    budgets = {}

    def open_for(grade_id, budget):
        budgets[grade_id] = budget
        return Hangs()

    graded = grade_notebook(run, run.reader.take(path, "ada", []), open_for)
    first, second, *others = budgets.values()
    assert first == second == run.terms.budget
    assert {(b.wall_seconds, b.waiting_seconds) for b in others} == {(20.0, 20.0)}
    assert {b.cpu_seconds for b in others} == {run.terms.budget.cpu_seconds}

    hurried = list(budgets)[2:]
    assert graded.record["intake"]["waited less"] == hurried
    told = {name for name, verdict in graded.verdicts.items() if "took long" in verdict.review}
    assert told == set(hurried)


def test_a_limit_below_that_stays():
    budgets = []
    patience = stopwatch.Patience(lambda _, budget: budgets.append(budget))
    patience.seconds = stopwatch.ENOUGH
    patience.open("", replace(Terms(5).budget, wall_seconds=3.0, waiting_seconds=9.0))
    assert (budgets[0].wall_seconds, budgets[0].waiting_seconds) == (3.0, 9.0)
