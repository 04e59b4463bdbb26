"""One process hears several variants, while none of them leaves it unfit for the next."""

import dataclasses
import time

import pytest

from grader.box.fork import Fork
from grader.building.graders import ready_probes
from grader.course.course import find_course
from grader.course.reference import reference_answer
from grader.verdict.grading import ExerciseGrader
from grader.verdict.screening import Screen

WRONG = "def dense_stride(size, order):\n    return ()\n"
STOPS = "raise ValueError\n"
ENDS = "import os\ndef dense_stride(size, order):\n    os._exit(1)\n"
PATIENCE = 60.0


class Opened:
    """Starts forks, and counts them."""

    def __init__(self, probes):
        self.count = 0
        self._probes = probes

    def __call__(self, attempt, patience):
        self.count += 1
        return Fork(self._probes)


@pytest.fixture(scope="module")
def exercise():
    chapter = find_course().chapter("ch02_strides")
    grader = ExerciseGrader(chapter, chapter.exercise("dense_stride"), ready_probes(chapter))
    return grader, reference_answer(chapter, grader.exercise)


@pytest.fixture
def screen(exercise):
    grader, right = exercise
    opened = Opened(ready_probes(grader.chapter))
    checks = range(len(grader.suite.checks))
    made = Screen(grader.suite, opened, 0, checks, PATIENCE)
    made.try_several(grader.attempt_with(WRONG), grader.attempt_with(right), PATIENCE)
    yield made, opened, lambda text: made.passes(grader.attempt_with(text), PATIENCE), right
    made.close()


def test_one_process_hears_several(screen):
    _, opened, passes, right = screen
    before = opened.count
    assert [passes(text) for text in (WRONG, right, WRONG, right)] == [False, True, False, True]
    assert opened.count == before + 1


@pytest.mark.parametrize("bad", [STOPS, ENDS])
def test_what_ends_or_stops_spoils_nothing(screen, bad):
    _, _, passes, right = screen
    assert [passes(text) for text in (right, bad, right)] == [True, False, True]


def test_where_the_right_program_fails_afterwards_each_has_its_own(exercise):
    grader, right = exercise
    opened = Opened(ready_probes(grader.chapter))
    screen = Screen(grader.suite, opened, 0, range(len(grader.suite.checks)), PATIENCE)
    screen.try_several(grader.attempt_with(WRONG), grader.attempt_with(WRONG), PATIENCE)
    before = opened.count
    assert [screen.passes(grader.attempt_with(right), PATIENCE) for _ in range(2)] == [True, True]
    assert opened.count == before + 2
    screen.close()


def test_what_a_kernel_holds_is_run_again_alone(exercise):
    grader, right = exercise
    whole = grader.attempt_with(right)
    parts = sorted(whole.program.parts, key=lambda part: part[0] != "dense_stride")
    held = dataclasses.replace(
        whole, program=dataclasses.replace(whole.program, parts=tuple(parts)), loaded=True
    )
    opened = Opened(ready_probes(grader.chapter))
    screen = Screen(grader.suite, opened, 0, range(len(grader.suite.checks)), PATIENCE)
    screen.try_several(grader.attempt_with(WRONG), grader.attempt_with(right), PATIENCE)
    assert not screen.passes(grader.attempt_with(WRONG), PATIENCE)
    assert screen.passes(held, PATIENCE)  # in the process that has heard another
    screen.close()


def test_the_end_of_the_time_shortens_the_patience(exercise):
    grader, _ = exercise
    asked = []

    def opened(attempt, patience):
        asked.append(patience)
        return Fork(ready_probes(grader.chapter))

    screen = Screen(grader.suite, opened, 0, [0], PATIENCE)
    start = time.monotonic()
    screen.passes(grader.attempt_with(WRONG), 3.0)
    assert asked == [3.0] and time.monotonic() - start < PATIENCE
    screen.close()
