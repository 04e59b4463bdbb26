"""A mistake is found, and explained, whatever the seed, or the author hears of it."""

import pytest

from grader.box.fork import Fork
from grader.building.graders import ready_probes
from grader.course.answers import Role, read_answers
from grader.course.course import Course
from grader.evidence.outcome import Ended, Outcome
from grader.proving import chance
from grader.verdict.checks import Suite
from grader.verdict.grading import ExerciseGrader
from grader.verdict.marks import Failure, Mark
from tests import ROOT
from tests.verdict.check_files import written

CHAPTER = Course(ROOT).chapter("ch03_matmul")
EXERCISE = CHAPTER.exercise("matmul_shape")
ANSWERS = [a for a in read_answers(CHAPTER, EXERCISE) if a.role is Role.MISTAKE]
NAME, OTHER = ANSWERS[0].name, ANSWERS[1].name
PASSED, FAILED = Mark("seen"), Mark("seen", Failure("Mismatch"))

BY_LUCK = '''
import torch
from grader import assert_equal

def test_by_luck(rng):
    """With every other seed."""
    assert_equal(int(torch.randint(2, (), generator=rng)), 0)
'''
ALWAYS = '''
def test_always():
    """Whatever the seed."""
    assert_equal(1, 0)
'''


def problems(monkeypatch, tmp_path, checks, marks):
    suite = Suite(written(tmp_path, checks, "test_matmul_shape.py"), ready_probes(CHAPTER), {})
    monkeypatch.setattr(ExerciseGrader, "suite", suite)
    return chance.found_by_chance(CHAPTER, EXERCISE, marks, seed=0)


@pytest.mark.parametrize(
    ("checks", "marks", "told"),
    [
        (BY_LUCK + ALWAYS, [FAILED, PASSED], False),  # by the other check, with another seed
        (BY_LUCK + ALWAYS, [PASSED, FAILED], False),
        (BY_LUCK, [FAILED], True),
    ],
)
def test_who_is_found_by_luck_alone_is_told(tmp_path, monkeypatch, checks, marks, told):
    found = problems(monkeypatch, tmp_path, checks, {NAME: marks})
    assert bool(found) is told
    for one in found:
        assert NAME in one.where and "test_by_luck found it by chance" in one.what


NOW_AND_THEN = '''
import torch
from grader import assert_equal

def test_now_and_then(shaped, rng):
    """Refuses what is right with every other seed."""
    assert shaped.ask([([3, 5], [5])]).value == [(3,)]
    assert_equal(int(torch.randint({sides}, (), generator=rng)), 0)
'''


@pytest.mark.parametrize(("sides", "told"), [(2, True), (1, False)])
def test_a_right_answer_that_is_refused_now_and_then_is_told(tmp_path, monkeypatch, sides, told):
    checks = written(tmp_path, NOW_AND_THEN.format(sides=sides), "test_matmul_shape.py")
    monkeypatch.setattr(ExerciseGrader, "suite", Suite(checks, ready_probes(CHAPTER), {}))
    found = chance.refused_by_chance(CHAPTER, EXERCISE, seed=0)
    right = [a for a in read_answers(CHAPTER, EXERCISE) if a.role is Role.ALTERNATE]
    names = ["reference", *(f"alternate {answer.name}" for answer in right)]
    assert [one.where for one in found] == [f"matmul_shape, {name}" for name in names if told]
    for one in found:
        assert "is refused with" in one.what and "other seeds" in one.what
        assert one.what.endswith(": test_now_and_then")


TOLD_APART = '''
import torch
from grader import assert_equal

def test_a_vector(shaped, rng):
    """Says what came, or with every other seed only that it is wrong."""
    told = {told}
    got = shaped.ask([([3, 5], [5])]).value
    assert_equal(got if told else got == [(3,)], [(3,)] if told else True)
'''


@pytest.mark.parametrize(
    ("said", "told"), [("int(torch.randint(2, (), generator=rng))", True), ("True", False)]
)
def test_who_is_told_from_others_by_luck_alone_is_told(tmp_path, monkeypatch, said, told):
    checks = TOLD_APART.format(told=said)
    found = problems(monkeypatch, tmp_path, checks, {NAME: [FAILED], OTHER: [FAILED]})
    assert [one.where.split()[-1] for one in found] == ([NAME, OTHER] if told else [])
    for one in found:
        assert (
            "is not explained" in one.what and "test_a_vector told it apart by chance" in one.what
        )


class Ends:
    """A process that answers three requests and ends at the fourth."""

    begun = 0

    def __init__(self, *_):
        Ends.begun += 1
        self._fork = Fork(*_)
        self._asked = 0

    def ask(self, request, watch=False):
        self._asked += 1
        if self._asked > 3:
            raise Ended(Outcome.CRASHED, "It ended.")
        return self._fork.ask(request, watch)

    def close(self):
        self._fork.close()


def test_a_process_that_ends_leaves_the_seed_to_the_next(tmp_path, monkeypatch):
    """It may have ended of what it was asked before."""
    monkeypatch.setattr(chance, "Fork", Ends)
    checks = TOLD_APART.format(told="True")
    assert not problems(monkeypatch, tmp_path, checks, {NAME: [FAILED], OTHER: [FAILED]})
    assert Ends.begun == chance.SEEDS  # the text, and two seeds each


def test_who_cannot_be_taken_for_another_is_not_asked_again(monkeypatch):
    def fork(*_):
        raise AssertionError("asked again")

    monkeypatch.setattr(chance, "Fork", fork)
    explained_alike = [answer for answer in ANSWERS if answer.explanation == ANSWERS[0].explanation]
    marks = {answer.name: [FAILED] * 2 for answer in explained_alike}
    assert not chance.found_by_chance(CHAPTER, EXERCISE, marks, seed=0)
