"""What each check is counted for."""

from grader.course.course import Course
from grader.verdict.checks import Check, CheckRun
from grader.verdict.compare import Mismatch
from grader.verdict.verdict import State, score
from tests import ROOT

EXERCISE = Course(ROOT).chapter("ch01_formats").exercise("decode")


def states(*runs):
    return [
        one.state
        for one in score(
            EXERCISE,
            [CheckRun(Check("c", "C.", weight), error, ()) for weight, error in runs],
        )
    ]


def test_after_a_failed_gate_nothing_counts_as_run():
    wrong = Mismatch("It differs.")
    assert states((0.0, None), (1.0, wrong), (1.0, None)) == [
        State.PASSED, State.FAILED, State.PASSED,
    ]  # fmt: skip
    assert states((0.0, wrong), (1.0, None), (1.0, wrong)) == [
        State.FAILED, State.NOT_RUN, State.NOT_RUN,
    ]  # fmt: skip
