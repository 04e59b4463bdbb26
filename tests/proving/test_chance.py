"""A mistake that a single check finds is found whatever the seed, or the author hears of it."""

import pytest

from grader.course.answers import Role, read_answers
from grader.course.course import Course
from grader.proving import chance
from grader.verdict.checks import Suite
from grader.verdict.grading import ExerciseGrader
from grader.verdict.marks import Failure, Mark
from tests import ROOT
from tests.verdict.check_files import written

CHAPTER = Course(ROOT).chapter("ch03_matmul")
EXERCISE = CHAPTER.exercise("matmul_shape")
MISTAKES = [a.name for a in read_answers(CHAPTER, EXERCISE) if a.role is Role.MISTAKE]
PASSED, FAILED = Mark("seen"), Mark("seen", Failure("Mismatch"))

CHECKS = '''
import torch
from grader import assert_equal

def test_by_luck(rng):
    """With every other seed."""
    assert_equal(int(torch.randint(2, (), generator=rng)), 0)

def test_always():
    """Whatever the seed."""
    assert_equal(1, 0)
'''


@pytest.mark.parametrize(
    ("marks", "told"),
    [
        ([FAILED, PASSED], False),  # by the other check, with another seed
        ([PASSED, FAILED], False),
        ([FAILED], True),
    ],
)
def test_who_is_found_by_luck_alone_is_told(tmp_path, monkeypatch, marks, told):
    text = CHECKS if len(marks) > 1 else CHECKS.partition("def test_always")[0]
    suite = Suite(written(tmp_path, text, "test_matmul_shape.py"), {}, {})
    monkeypatch.setattr(ExerciseGrader, "suite", suite)
    problems = chance.found_by_chance(CHAPTER, EXERCISE, {MISTAKES[0]: marks}, seed=0)
    assert bool(problems) is told
    for one in problems:
        assert MISTAKES[0] in one.where and "test_by_luck found it by chance" in one.what


def test_what_more_checks_find_is_not_asked_again(monkeypatch):
    def fork(*_):
        raise AssertionError("asked again")

    monkeypatch.setattr(chance, "Fork", fork)
    marks = dict.fromkeys(MISTAKES, [FAILED] * 2)
    assert not chance.found_by_chance(CHAPTER, EXERCISE, marks, seed=0)
