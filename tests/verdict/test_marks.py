"""Marks tell the values that a comparison tells apart, and no others."""

import math

import pytest
import torch

from grader.verdict.checks import Check, CheckRun
from grader.verdict.compare import Comparison, Mismatch
from grader.verdict.marks import Mark, mark_of

CHECK = Check("test_it", "It holds.", 1.0)


def mark(*comparisons, failed=True):
    error = Mismatch("no") if failed else None
    return mark_of(CheckRun(CHECK, error, comparisons, comparisons))


def equal(value):
    return mark(Comparison("equal", value, passed=False))


NUMBERS = torch.randn(5000, generator=torch.Generator().manual_seed(0))


def close(tensor):
    return mark(Comparison("close", tensor, (1e-5, 1e-8), passed=False))


def changed(index, value):
    tensor = NUMBERS.clone()
    tensor[index] = value
    return tensor


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2.0], [True, 2]),
        ([math.nan], [math.nan]),
        (((1, 2),), ([1, 2],)),
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}),
        ({3, 1}, {1, 3}),
        ([torch.ones(2, 2).t()], [torch.ones(2, 2)]),
        ([torch.ones(1).as_strided((1,), (31,))], [torch.ones(1)]),
    ],
)
def test_what_compares_as_equal_has_one_mark(one, other):
    assert equal(one).same_failure(equal(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),  # by itself a value's type is part of it
        ([1, [2, 3]], [1, 2, [3]]),
        ("1", 1),
        ([torch.ones(2)], [torch.ones(2, dtype=torch.float64)]),
        ([torch.tensor(0.0)], [torch.tensor(-0.0)]),
        ({"a": "b"}, {"b": "a"}),
    ],
)
def test_what_differs_has_another(one, other):
    assert not equal(one).same_failure(equal(other))


@pytest.mark.parametrize(
    ("tensor", "same"),
    [
        (NUMBERS, True),
        (NUMBERS * (1 + 3e-6), True),
        (changed(4321, NUMBERS[4321] + 0.01), False),
        (changed([7, 8], NUMBERS[[8, 7]]), False),
        (changed(9, math.nan), False),
        (NUMBERS.double(), False),
        (NUMBERS.reshape(50, 100), False),
    ],
)
def test_a_value_within_the_tolerance_is_the_same(tensor, same):
    kept = Mark.from_data(close(NUMBERS).to_data())
    assert close(tensor).same_failure(kept) is same


def test_what_passed_within_a_tolerance_is_near_whatever_else_passed():
    near = Comparison("close", NUMBERS, (1e-5, 1e-8), passed=True)
    other = Comparison("close", NUMBERS + 1, (1e-5, 1e-8), passed=True)
    wrong = Comparison("equal", 3, passed=False)
    assert mark(near, wrong).same_failure(mark(other, wrong))
    assert mark(near, failed=False) == mark(other, failed=False)


def test_every_comparison_that_failed_counts_and_how_it_ended():
    one, two = (Comparison("equal", value, passed=False) for value in (1, 2))
    passed = Comparison("equal", 2, passed=True)
    assert not mark(one, two).same_failure(mark(one))
    assert not mark(one, two).same_failure(mark(one, passed))
    near, far = (Comparison("close", NUMBERS + n, (1e-5, 1e-8), passed=False) for n in (1, 2))
    assert not mark(near, one).same_failure(mark(far, one))


def test_values_behind_the_first_that_differs_tell_which_is_nearer():
    one, two, three = (Comparison("equal", value, passed=False) for value in (1, 2, 3))
    assert mark(one, two).same_failure(mark(one, three))
    assert mark(one, two).rest != mark(one, three).rest


def test_a_free_choice_counts_as_failed_or_not_alone():
    ours, theirs = (Comparison("equal", value, passed=False, free=True) for value in (1, 2))
    assert mark(ours).same_failure(mark(theirs))
    assert not mark(ours).same_failure(mark(Comparison("equal", 2, passed=True, free=True)))


def test_words_of_a_check_tell_what_it_did_not_record():
    def failed(what, *comparisons):
        return mark_of(CheckRun(CHECK, Mismatch(what), comparisons, comparisons))

    passed = Comparison("equal", 1, passed=True)
    assert not failed("Too many bytes.", passed).same_failure(failed("Too late.", passed))
    assert failed("At 0x7f0123456789.").same_failure(failed("At 0x7f0123456781."))
    assert failed("In <eval_with_key>.7.").same_failure(failed("In <eval_with_key>.161."))
    assert not failed("Got 0x3F80.").same_failure(failed("Got 0x3F81."))
