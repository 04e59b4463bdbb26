"""Checks of `dense_stride`: both well-known orders, any other, and sizes of nought."""

import torch

from grader import assert_equal, draw_int, draw_order, gate
from grader.ch02_strides.odd_layouts import assert_each


def compare(dense_strides, cases):
    """Compare with what `torch.empty_permuted` does."""
    got = dense_strides.ask(cases).value
    expected = [torch.empty_permuted(size, order).stride() for size, order in cases]
    assert_each(
        got, expected, [{"call": f"dense_stride({size}, {order})"} for size, order in cases]
    )


def sizes(rng, dims, low=2):
    return tuple(draw_int(rng, low, 6) for _ in range(dims))


@gate
def test_one_per_dimension(dense_strides, rng):
    """Returns one stride per dimension (a list is as good as a tuple)."""
    got = dense_strides.ask([(sizes(rng, 3), (0, 1, 2)), (sizes(rng, 2), (0, 1))]).value
    lengths = [len(stride) if isinstance(stride, list | tuple) else None for stride in got]
    assert_equal(lengths, [3, 2], "A tuple has one stride for each dimension.")


def test_row_major(dense_strides, rng):
    """The last dimension innermost, for one to five dimensions."""
    compare(
        dense_strides, [(sizes(rng, dims), tuple(range(dims))) for dims in (1, 2, 3, 4, 5, 2, 3)]
    )


def test_channels_last(dense_strides, rng):
    """Images with dimension 1 innermost."""
    compare(dense_strides, [(sizes(rng, 4), (0, 2, 3, 1)) for _ in range(5)])


def test_any_order(dense_strides, rng):
    """Any other order, of two to six dimensions."""
    cases = [((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((2, 3, 4), (1, 2, 0))]
    for dims in (3, 4, 5, 6):
        for _ in range(3):
            order = draw_order(rng, dims)
            cases.append((sizes(rng, dims), tuple(order)))
    compare(dense_strides, cases)


def test_ones_and_none(dense_strides, rng):
    """Dimensions of size 1, and no dimension at all."""
    cases = [((), ()), ((1,), (0,)), ((1, 4, 1), (0, 1, 2)), ((3, 1, 2), (1, 2, 0))]
    cases += [(sizes(rng, 4, low=1), (0, 2, 3, 1)) for _ in range(4)]
    compare(dense_strides, cases)


def test_empty(dense_strides):
    """A dimension of size 0 counts as 1."""
    cases = [((0,), (0,)), ((2, 0, 3), (0, 1, 2)), ((2, 0, 4), (2, 0, 1)), ((4, 5, 0), (0, 1, 2))]
    compare(dense_strides, [*cases, ((0, 3, 0, 5), (0, 2, 3, 1)), ((2, 3, 0), (2, 1, 0))])
