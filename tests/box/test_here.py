"""This very process answers: what takes too long is interrupted, even where interrupts are caught."""

import time

import pytest

from grader.box.here import Here
from grader.evidence.outcome import Ended, Outcome
from grader.inside import interrupts
from grader.inside.probe import Probe
from grader.inside.process.budget import Budget
from grader.verdict.interview import Interview

CALLED = Probe("called", lambda student: student.f(), (), frozenset())


def asked(function, seconds):
    here = Here({"called": CALLED}, {"f": function}, Budget(wall_seconds=seconds))
    with interrupts.held():
        return Interview(here, (), seed=1).ask(CALLED, {})


def loops():
    while True:
        pass


def catches():
    caught = 0
    while caught < 2:
        try:
            loops()
        except BaseException:
            caught += 1
    loops()


@pytest.mark.alone  # xdist's threads take signals that the main thread holds back
@pytest.mark.parametrize("answer", [loops, catches, lambda: time.sleep(1000)])
def test_an_answer_that_takes_too_long_is_interrupted(answer):
    with pytest.raises(Ended, match=r"no answer within 0\.3 s") as ended:
        asked(answer, 0.3)
    assert ended.value.outcome is Outcome.TIMED_OUT
    assert asked(lambda: 42, 600).value == 42
