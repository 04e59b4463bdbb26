"""Checks of `int8_matmul`: exact whole numbers, from a unit that knows no zero points."""

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_same_bits,
    assert_tensor,
    compared,
    gate,
    points,
    whole_numbers,
)


def codes(rng, *shape):
    return whole_numbers(rng, shape, -128, 127, dtype=torch.int8)


def exact(a, a_zero, b, b_zero):
    return ((a.long() - a_zero) @ (b.long() - b_zero)).int()


def compare(int8_product, a, a_zero, b, b_zero):
    """Compare bit for bit; say where, and with which zero points, if they differ."""
    expected = exact(a, a_zero, b, b_zero)
    got = int8_product.ask(a, a_zero, b, b_zero).value["product"]
    try:
        assert_same_bits(got, expected)
    except Mismatch as mismatch:
        rows = [
            ("call", f"int8_matmul(a, {a_zero}, b, {b_zero}, int8_unit)"),
            ("shapes", f"a {tuple(a.shape)}, b {tuple(b.shape)}"),
        ]
        if isinstance(got, torch.Tensor) and got.shape == expected.shape:
            rows += [("at", str(at)) for at in (got != expected).nonzero()[:1].tolist()]
        what = mismatch.what.replace("simplest", "first")
        raise Mismatch(what, (*rows, *mismatch.rows)) from None


@pytest.fixture
def zeros(rng):
    """Two zero points, neither 0 nor equal."""
    first, second = torch.randint(20, 128, (2,), generator=rng).tolist()
    return first, -second


@gate
def test_shape_and_unit(int8_product, rng):
    """Returns an `int32` matrix, and multiplies with the unit it is given."""
    for m, k, n in ((3, 5, 2), (1, 4, 1), (4, 1, 3)):
        evidence = int8_product.ask(codes(rng, m, k), 3, codes(rng, k, n), -5).value
        assert_tensor(evidence["product"], dtype=torch.int32, shape=(m, n))
        if not evidence["calls"]:
            raise Mismatch("`multiply` was not called. The multiplication is the unit's work.")
    a, b = codes(rng, 3, 5), codes(rng, 5, 2)
    got = int8_product.ask(a, 3, b, -5, True).value["product"]
    compared(got)
    if torch.equal(got, exact(a, 3, b, -5)):
        raise Mismatch("`multiply` was called, but what it returned is not used.")


def test_no_zero_points(int8_product, rng):
    """Both zero points 0: the product of the codes."""
    for m, k, n in ((3, 5, 2), (7, 64, 9)):
        compare(int8_product, codes(rng, m, k), 0, codes(rng, k, n), 0)


def test_one_zero_point(int8_product, rng, zeros):
    """One zero point, of `a` or of `b`."""
    for zero in (1, *zeros, 127, -128):
        a, b = codes(rng, 4, 6), codes(rng, 6, 4)
        compare(int8_product, a, zero, b, 0)
        compare(int8_product, a, 0, b, zero)


@points(2)
def test_both_zero_points(int8_product, rng, zeros):
    """Both zero points, for matrices of any shape and layout."""
    first, second = zeros
    a, b = codes(rng, 12, 10), codes(rng, 10, 14)
    layouts = [
        (a, b),
        (codes(rng, 10, 12).t(), codes(rng, 14, 10).t()),
        (a[1::3, ::2], b[::2, 3::4]),
        (a[:1], b[:, :1]),
        (a[:, :1].expand(12, 10), b),
    ]
    for left, right in layouts:
        compare(int8_product, left, first, right, second)
        compare(int8_product, left, second, right, first)


def test_large_sums(int8_product, rng):
    """Sums far beyond 2**24, exact to the last digit."""
    high, low = (
        torch.full((2, 4095), 127).to(torch.int8),
        torch.full((4095, 2), -128).to(torch.int8),
    )
    high[0, 0], low[7, 1] = 126, -127
    for a, a_zero, b, b_zero in (
        (high, -128, high.t(), -127),
        (low.t(), 127, low, 126),
        (high, -127, low, 127),
        (codes(rng, 3, 3001), -128, codes(rng, 3001, 2), 127),
    ):
        compare(int8_product, a, a_zero, b, b_zero)


def test_one_call(int8_product, rng, zeros):
    """The unit is called exactly once, whatever the zero points."""
    first, second = zeros
    for a_zero, b_zero in ((0, 0), (first, 0), (first, second)):
        a, b = codes(rng, 5, 8), codes(rng, 8, 6)
        compare(int8_product, a, a_zero, b, b_zero)
        calls = int8_product.ask(a, a_zero, b, b_zero).value["calls"]
        with about(("call", f"int8_matmul(a, {a_zero}, b, {b_zero}, int8_unit)")):
            assert_equal(calls, 1, "`multiply` was not called exactly once.")
