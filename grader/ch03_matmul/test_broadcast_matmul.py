"""Checks of `broadcast_matmul`: batch dimensions broadcast, and nothing is written out for it."""

import torch

from grader import (
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
from grader.ch03_matmul.operands import assert_exact, assert_refused
from grader.ch03_matmul.shapes import fitting_batches


def compare(broadcast_product, a, b):
    assert_exact(broadcast_product.ask(a, b).value["result"], a @ b, a=a, b=b)


def shapes(broadcast_product, rng, pairs):
    for a, b in pairs:
        compare(broadcast_product, whole_numbers(rng, a), whole_numbers(rng, b))


WIDE = [
    ((8, 1, 16, 64), (1, 8, 64, 16)),
    ((16, 1, 8, 32), (16, 32, 8)),
    ((32, 8), (16, 8, 16)),
    ((12, 16, 8), (8, 16)),
    ((3, 8, 1, 16, 8), (3, 1, 6, 8, 16)),
    ((6, 1, 5, 1, 8, 8), (4, 1, 7, 8, 8)),
]
"""Shapes for which writing out the broadcast operands costs many times what they hold."""


@gate
def test_shape_and_dtype(broadcast_product, rng):
    """The result has the dtype of the operands, and the broadcast shape."""
    got = broadcast_product.ask(
        whole_numbers(rng, (4, 1, 3, 5)), whole_numbers(rng, (1, 2, 5, 6))
    ).value["result"]
    assert_tensor(got, dtype=torch.float32, shape=(4, 2, 3, 6))


def test_one_side(broadcast_product, rng):
    """Batch dimensions on one side alone, or on neither."""
    pairs = [((3, 5), (5, 2)), ((4, 3, 5), (5, 2)), ((3, 5), (4, 5, 2)), ((4, 3, 5), (1, 5, 2))]
    shapes(broadcast_product, rng, [*pairs, ((6, 4, 3, 5), (5, 2)), ((3, 5), (6, 4, 5, 2))])


def test_both_sides(broadcast_product, rng):
    """Dimensions that broadcast from either side, between such as are shared; any dtype."""
    pairs = [((4, 1, 3, 5), (6, 5, 2)), ((1, 4, 3, 5), (6, 1, 5, 2)), ((4, 3, 5), (4, 5, 2))]
    pairs += [((7, 1, 4, 3, 5), (7, 6, 1, 5, 2)), ((4, 7, 1, 3, 5), (1, 7, 6, 5, 2))]
    pairs += [((1, 7, 4, 3, 5), (6, 7, 1, 5, 2)), ((2, 1, 3, 1, 4, 5), (1, 4, 1, 6, 5, 3))]
    shapes(broadcast_product, rng, pairs)
    a = whole_numbers(rng, (4, 1, 3, 5), dtype=torch.float64)
    b = whole_numbers(rng, (1, 2, 5, 6), dtype=torch.float64)
    compare(broadcast_product, a, b)


def test_any_ranks(broadcast_product, rng):
    """40 pairs of random shapes, of up to seven dimensions."""
    for _ in range(40):
        batch_a, batch_b = fitting_batches(rng, most=5)
        m, k, n = (draw_int(rng, 1, 4) for _ in range(3))
        compare(
            broadcast_product,
            whole_numbers(rng, (*batch_a, m, k)),
            whole_numbers(rng, (*batch_b, k, n)),
        )


def test_any_layout(broadcast_product, rng):
    """Permuted, strided, expanded and empty operands."""
    for a, b in [((4, 1, 3, 5), (6, 5, 2)), ((7, 1, 4, 3, 5), (7, 6, 1, 5, 2)), ((3, 5), (5, 2))]:
        compare(broadcast_product, permuted_tensor(rng, a), permuted_tensor(rng, b))
        for _ in range(3):
            compare(broadcast_product, awkward_tensor(rng, a), awkward_tensor(rng, b))
    empty = [((4, 1, 3, 0), (6, 0, 2)), ((0, 1, 3, 5), (6, 5, 2)), ((4, 1, 0, 5), (6, 5, 2))]
    shapes(broadcast_product, rng, [*empty, ((0, 3, 5), (1, 5, 2)), ((4, 1, 3, 5), (0, 5, 2))])


def test_refusals(broadcast_product, rng):
    """Operands that do not fit raise an error, empty ones too."""
    pairs = [((3, 5), (4, 2)), ((3, 1), (4, 2)), ((4, 3, 5), (2, 5, 2)), ((2, 3, 6), (4, 2))]
    pairs += [((0, 5), (3, 2)), ((4, 0, 5), (4, 3, 2)), ((0, 3, 5), (2, 5, 2))]
    for a, b in [*pairs, ((4, 3, 5), (8, 5, 2)), ((4, 2, 3, 5), (4, 3, 5, 2)), ((4, 6), (3, 2))]:
        left, right = whole_numbers(rng, a), whole_numbers(rng, b)
        assert_refused(broadcast_product.ask(left, right), a=left, b=right)


@claimed
def test_one_call(broadcast_product, rng):
    """One call of `mm` or `bmm` does it, and no other product."""
    for a, b in WIDE:
        left, right = whole_numbers(rng, a), whole_numbers(rng, b)
        compare(broadcast_product, left, right)
        products = broadcast_product.ask(left, right).value["products"]
        if products not in (["mm"], ["bmm"]):
            what = f"The products that ran, for {a} and {b}. One is enough:"
            assert_equal(products, ["bmm"], what)


@claimed
@points(3)
def test_writes_nothing_out(broadcast_product, rng):
    """At most the result, and each operand once at its own size, is allocated."""
    for a, b in WIDE:
        left, right = whole_numbers(rng, a), whole_numbers(rng, b)
        compare(broadcast_product, left, right)
        allocated = broadcast_product.ask(left, right).value["new_bytes"]
        allowed = (left @ right).nbytes + left.nbytes + right.nbytes
        if allocated > allowed:
            what = f"Too many new bytes for {a} and {b}. Allowed and allocated:"
            assert_equal(allocated, allowed, what)
