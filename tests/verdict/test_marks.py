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
    return mark_of(CheckRun(CHECK, error, comparisons))


def equal(value):
    return mark(Comparison("equal", value))


NUMBERS = torch.randn(5000, generator=torch.Generator().manual_seed(0))


def close(tensor):
    return mark(Comparison("close", tensor, (1e-5, 1e-8)))


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
    near = Comparison("close", NUMBERS, (1e-5, 1e-8))
    other = Comparison("close", NUMBERS + 1, (1e-5, 1e-8))
    wrong = Comparison("equal", 3)
    assert mark(near, wrong).same_failure(mark(other, wrong))
    assert mark(near, failed=False) == mark(other, failed=False)
