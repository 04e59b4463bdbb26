"""Checks of `matmul`: torch.matmul's values for any ranks, from one call, without idle copies."""

import torch

from grader import (
    Mismatch,
    assert_equal,
    assert_tensor,
    awkward_tensor,
    claimed,
    draw_int,
    gate,
    permuted_tensor,
    points,
    whole_numbers,
)
from grader.ch03_matmul.operands import assert_exact, assert_refused, shown
from grader.ch03_matmul.shapes import fitting_batches


def compare(multiplied, a, b):
    assert_exact(multiplied.ask(a, b).value["result"], a @ b, a=a, b=b)


def shapes(multiplied, rng, pairs):
    for a, b in pairs:
        compare(multiplied, whole_numbers(rng, a), whole_numbers(rng, b))


@gate
def test_matrices(multiplied, rng):
    """The product of two matrices has their dtype and the right shape."""
    got = multiplied.ask(whole_numbers(rng, (3, 5)), whole_numbers(rng, (5, 2))).value["result"]
    assert_tensor(got, dtype=torch.float32, shape=(3, 2))


def test_stacks_by_a_matrix(multiplied, rng):
    """Matrices, and stacks of matrices of any rank and dtype, by a matrix."""
    pairs = [((3, 5), (5, 2)), ((4, 3, 5), (5, 2)), ((2, 1, 4, 3, 5), (5, 2)), ((1, 1, 5), (5, 1))]
    shapes(multiplied, rng, pairs)
    for dtype in (torch.float64, torch.int64):
        compare(
            multiplied,
            whole_numbers(rng, (2, 3, 4), dtype=dtype),
            whole_numbers(rng, (4, 3), dtype=dtype),
        )


def test_vectors(multiplied, rng):
    """Vectors on either side, and on both; ones that were there stay there."""
    pairs = [((5,), (5,)), ((5,), (5, 2)), ((3, 5), (5,)), ((5,), (4, 5, 2)), ((4, 3, 5), (5,))]
    pairs += [((5,), (2, 4, 5, 1)), ((2, 1, 3, 5), (5,)), ((1, 1, 5), (5,)), ((5,), (1, 5, 1))]
    shapes(multiplied, rng, [*pairs, ((1,), (1,)), ((5, 5, 5), (5,)), ((5,), (5, 5, 5))])


def test_batches(multiplied, rng):
    """Batches of matrices on the right, with batch dimensions that broadcast."""
    pairs = [((4, 3, 5), (4, 5, 2)), ((3, 5), (4, 5, 2)), ((1, 3, 5), (4, 5, 2))]
    pairs += [((4, 3, 5), (1, 5, 2)), ((2, 1, 3, 5), (4, 5, 2)), ((4, 3, 5), (2, 1, 5, 2))]
    for _ in range(12):
        batch_a, batch_b = fitting_batches(rng, most=4)
        m, k, n = (draw_int(rng, 1, 4) for _ in range(3))
        pairs.append(((*batch_a, m, k), (*batch_b, k, n)))
    shapes(multiplied, rng, pairs)


def test_any_layout(multiplied, rng):
    """Permuted, strided, expanded and offset operands."""
    pairs = [((4, 3, 5), (5, 2)), ((2, 4, 3, 5), (5, 2)), ((4, 3, 5), (5,)), ((5,), (4, 5, 2))]
    pairs += [((4, 3, 5), (4, 5, 2)), ((2, 4, 3, 5), (4, 5, 2)), ((3, 5), (2, 4, 5, 2))]
    for a, b in pairs:
        compare(multiplied, permuted_tensor(rng, a), permuted_tensor(rng, b))
        for _ in range(2):
            compare(multiplied, awkward_tensor(rng, a), awkward_tensor(rng, b))


def test_nothing_to_sum(multiplied, rng):
    """Sizes of zero: no rows, no batches, or sums of no terms, which are zero."""
    pairs = [((3, 0), (0, 2)), ((4, 3, 0), (0, 2)), ((0,), (0,)), ((0, 3, 5), (5, 2))]
    pairs += [
        ((4, 0, 5), (5, 2)),
        ((0, 3, 5), (1, 5, 2)),
        ((4, 3, 0), (4, 0, 2)),
        ((4, 3, 0), (0,)),
    ]
    shapes(multiplied, rng, [*pairs, ((2, 0, 3, 5), (1, 5, 0)), ((0,), (4, 0, 2))])


def test_refusals(multiplied, rng):
    """Operands that do not fit raise an error, empty ones too."""
    pairs = [((3, 6), (2, 4)), ((4, 6), (3, 2)), ((2, 3, 6), (4, 2)), ((6,), (3,)), ((2, 6), (3,))]
    pairs += [((0, 5), (3, 2)), ((4, 0, 5), (3, 2)), ((4, 0, 5), (4, 3, 2))]
    pairs += [((), (3,)), ((3, 2), ()), ((), ()), ((4, 3, 5), (2, 5, 2)), ((4, 3, 5), (4, 3, 5))]
    for a, b in [*pairs, ((4, 3, 5), (8, 5, 2)), ((2, 3, 4, 5), (6, 5, 2)), ((3, 1), (2, 3))]:
        left, right = whole_numbers(rng, a), whole_numbers(rng, b)
        assert_refused(multiplied.ask(left, right), a=left, b=right)


@claimed
@points(4)
def test_one_call(multiplied, rng):
    """One call of `mm` or `bmm` does it, and no other product."""
    pairs = [((3, 5), (5, 2)), ((4, 3, 5), (5, 2)), ((4, 3, 5), (4, 5, 2)), ((5,), (4, 5, 2))]
    for a, b in [*pairs, ((5,), (5,)), ((2, 1, 3, 5), (4, 5, 2)), ((3, 5), (5,))]:
        left, right = whole_numbers(rng, a), whole_numbers(rng, b)
        compare(multiplied, left, right)
        products = multiplied.ask(left, right).value["products"]
        if products not in (["mm"], ["bmm"]):
            assert_equal(
                products, ["mm"], f"The products that ran, for {a} and {b}. One is enough:"
            )


@claimed
def test_folds(multiplied, rng):
    """A stack of matrices by one matrix, or by a vector, is one `mm`."""
    for a, b in [((4, 3, 5), (5, 2)), ((2, 4, 3, 5), (5, 2)), ((4, 3, 5), (5,)), ((3, 5), (5, 2))]:
        left, right = whole_numbers(rng, a), whole_numbers(rng, b)
        compare(multiplied, left, right)
        products = multiplied.ask(left, right).value["products"]
        assert_equal(products, ["mm"], f"The products that ran, for {a} and {b}.")


@claimed
def test_copies_nothing(multiplied, rng):
    """Where views will do, nothing is allocated but the result."""
    stack, batch = whole_numbers(rng, (4, 3, 5)), whole_numbers(rng, (4, 5, 2))
    matrix, turned = whole_numbers(rng, (5, 2)), whole_numbers(rng, (2, 5)).mT
    pairs = [
        (stack, matrix),
        (stack, turned),
        (stack, batch),
        (stack, whole_numbers(rng, (4, 2, 5)).mT),
    ]
    pairs += [(whole_numbers(rng, (4, 5, 3)).mT, batch), (whole_numbers(rng, (3, 5)), batch)]
    pairs += [(whole_numbers(rng, (5,)), batch), (stack, whole_numbers(rng, (5,)))]
    pairs += [
        (whole_numbers(rng, (3, 5)), whole_numbers(rng, (2, 4, 5, 2))),
        (whole_numbers(rng, (5, 3)).mT, turned),
    ]
    for a, b in pairs:
        compare(multiplied, a, b)
        allocated, needed = multiplied.ask(a, b).value["new_bytes"], (a @ b).nbytes
        if allocated != needed:
            what = f"New bytes for a of {shown(a)}, b of {shown(b)}; the result's are enough."
            assert_equal(allocated, needed, what)
    if not multiplied.ask(stack, matrix).value["products"]:
        raise Mismatch("No product ran.")
