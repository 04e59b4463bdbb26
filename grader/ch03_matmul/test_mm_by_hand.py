"""Checks of `mm_by_hand`: the product of two matrices of any dtype, layout and size."""

import torch

from grader import (
    assert_same_bits,
    assert_tensor,
    awkward_tensor,
    gate,
    permuted_tensor,
    points,
    whole_numbers,
)
from grader.ch03_matmul.operands import assert_exact, assert_refused


def compare(by_hand, a, b):
    assert_exact(by_hand.ask(a, b).value, a @ b, a=a, b=b)


@gate
def test_shape(by_hand, rng):
    """Returns a matrix with the rows of `a` and the columns of `b`."""
    for m, k, n in ((3, 5, 2), (1, 4, 6)):
        got = by_hand.ask(whole_numbers(rng, (m, k)), whole_numbers(rng, (k, n))).value
        assert_tensor(got, dtype=torch.float32, shape=(m, n))


@points(2.5)
def test_values(by_hand, rng):
    """The sums of products, for matrices of any shape, square ones too."""
    for m, k, n in ((3, 5, 2), (4, 4, 4), (2, 7, 9), (20, 30, 10)):
        compare(by_hand, whole_numbers(rng, (m, k)), whole_numbers(rng, (k, n)))


def test_thin_matrices(by_hand, rng):
    """Single rows, single columns, and sums of one term."""
    for m, k, n in ((1, 5, 1), (4, 1, 3), (1, 1, 1), (5, 3, 1), (1, 3, 5)):
        compare(by_hand, whole_numbers(rng, (m, k)), whole_numbers(rng, (k, n)))


def test_dtypes(by_hand, rng):
    """The result has the dtype of the operands, whole numbers too, and wraps as `mm` does."""
    large = {
        torch.float64: 2**20 + 1,
        torch.int64: 2**40 + 1,
        torch.int32: 2**28 + 7,
        torch.int8: 30,
    }
    for dtype, factor in large.items():
        a = factor * whole_numbers(rng, (3, 6), dtype=dtype)
        b = factor * whole_numbers(rng, (6, 4), dtype=dtype)
        assert_same_bits(by_hand.ask(a, b).value + 0, a @ b + 0)


def test_empty(by_hand, rng):
    """Sizes of 0: no elements, or sums of nothing."""
    for m, k, n in ((3, 0, 2), (0, 4, 2), (3, 4, 0), (0, 0, 0)):
        compare(by_hand, whole_numbers(rng, (m, k)), whole_numbers(rng, (k, n)))


def test_refusals(by_hand, rng):
    """Matrices that do not fit raise an error, also where they would broadcast."""
    for a, b in (((3, 5), (4, 2)), ((3, 1), (4, 2)), ((3, 4), (1, 2)), ((4, 3), (4, 3))):
        left, right = whole_numbers(rng, a), whole_numbers(rng, b)
        assert_refused(by_hand.ask(left, right), a=left, b=right)


def test_any_layout(by_hand, rng):
    """Transposed, strided and expanded operands."""
    compare(by_hand, permuted_tensor(rng, (3, 5)), permuted_tensor(rng, (5, 4)))
    for _ in range(8):
        compare(by_hand, awkward_tensor(rng, (3, 5)), awkward_tensor(rng, (5, 4)))
