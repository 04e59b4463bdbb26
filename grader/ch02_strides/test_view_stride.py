"""Checks of `view_stride`: each part of the rule apart, then layouts drawn at random."""

import torch

from grader import assert_equal, assert_raises, draw_int, draw_layout, draw_one, gate
from grader.ch02_strides.odd_layouts import assert_each


def truth(size, stride, new_size):
    """Return the strides of PyTorch's own view, or None where it refuses for the strides' sake."""
    try:
        return torch.empty_strided(size, stride).view(new_size).stride()
    except RuntimeError as error:
        if "view size is not compatible" in str(error):
            return None
        raise


def compare(view_strides, cases):
    """Compare with PyTorch's own views."""
    got = view_strides.ask(cases).value
    assert_each(
        [_judged(answer, case) for answer, case in zip(got, cases, strict=True)],
        [_judged(truth(*case), case) for case in cases],
        [{"call": f"view_stride{case}"} for case in cases],
    )


def _judged(stride, case):
    """Replace strides that are free."""
    size, _, new_size = case
    if not isinstance(stride, list | tuple) or len(stride) != len(new_size):
        return stride
    if 0 in size:
        return (0,) * len(new_size)
    return tuple(0 if n == 1 else s for s, n in zip(stride, _sizes(new_size, size), strict=True))


def _sizes(new_size, size):
    return torch.empty(size, device="meta").view(new_size).shape


def cuts(rng, numel):
    """Return a random size with that many elements, here and there a 1 in it."""
    size, left = [], numel
    while left > 1:
        factors = [n for n in range(2, left + 1) if left % n == 0]
        size.append(draw_one(rng, factors))
        left //= size[-1]
    for _ in range(draw_int(rng, 0, 1)):
        size.insert(draw_int(rng, 0, len(size)), 1)
    return tuple(size)


@gate
def test_strides(view_strides):
    """Returns one stride per new dimension where there is a view."""
    got = view_strides.ask([((6,), (1,), (2, 3)), ((2, 3), (3, 1), (3, 2, 1))]).value
    lengths = [len(stride) if isinstance(stride, list | tuple) else None for stride in got]
    assert_equal(lengths, [2, 3], "One stride for each new dimension is asked for.")


def test_split(view_strides):
    """Splitting dimensions, and sizes of 1 put in or taken out, in any layout."""
    compare(
        view_strides,
        [
            ((20,), (2,), (2, 5, 2)), ((6, 4), (1, 6), (2, 3, 2, 2)), ((6, 4), (9, 2), (6, 2, 2)),
            ((6, 4), (1, 9), (3, 2, 4)), ((6, 4), (0, 3), (2, 3, 4)), ((4, 6), (1, 4), (1, 4, 1, 6, 1)),
            ((4, 1, 6), (1, 3, 4), (4, 6)), ((6, 4), (1, 6), (4, 6)), ((6, 4), (9, 2), (8, 3)),
        ],
    )  # fmt: skip


def test_merge(view_strides):
    """Neighbours that merge, and neighbours with a jump in between."""
    compare(
        view_strides,
        [
            ((2, 3), (3, 1), (6,)), ((2, 3), (6, 2), (6,)), ((2, 3), (7, 2), (6,)), ((2, 3), (1, 2), (6,)),
            ((2, 3), (3, 2), (6,)), ((2, 3, 4), (1, 8, 2), (2, 12)), ((2, 3, 4), (12, 4, 1), (6, 4)),
            ((2, 3, 4), (13, 4, 1), (6, 4)), ((2, 3, 4), (13, 4, 1), (2, 12)), ((4, 2, 3), (3, 12, 4), (4, 6)),
            ((2, 3, 4), (4, 8, 1), (24,)), ((2, 2, 2), (1, 2, 4), (8,)), ((2, 2, 2), (1, 4, 2), (2, 4)),
            # the first step and the last place are those of a view, and in between they are not
            ((2, 2, 2), (2, 4, 1), (8,)), ((2, 2, 3), (3, 6, 1), (12,)), ((2, 2, 2), (2, 4, 1), (4, 2)),
        ],
    )  # fmt: skip


def test_across(view_strides):
    """Runs cut anew: new dimensions within a run, and ones that would reach across a jump."""
    compare(
        view_strides,
        [
            ((4, 3), (6, 1), (2, 2, 3)), ((4, 3), (6, 1), (2, 6)), ((4, 3), (6, 1), (4, 3, 1)),
            ((2, 3, 4), (12, 4, 1), (4, 6)), ((2, 3, 4), (40, 4, 1), (2, 2, 6)), ((2, 3, 4), (40, 4, 1), (4, 6)),
            ((2, 3, 4), (12, 4, 2), (3, 2, 4)), ((2, 3, 4, 5), (15, 5, 30, 1), (6, 20)),
            ((2, 3, 4, 5), (15, 5, 30, 1), (3, 2, 2, 2, 5)), ((2, 3, 4, 5), (15, 5, 30, 6), (3, 2, 10, 2)),
            ((4, 6), (6, 1), (3, 8)), ((4, 6), (7, 1), (3, 8)), ((6, 4), (4, 1), (3, 2, 2, 2)),
            ((6, 6), (7, 1), (4, 9)), ((6, 6), (7, 1), (9, 4)),
        ],
    )  # fmt: skip


def test_size_one(view_strides):
    """Sizes of 1 with strides that mean nothing, in front, between and behind."""
    compare(
        view_strides,
        [
            ((2, 1, 3), (3, 99, 1), (6,)), ((1, 2, 3), (0, 3, 1), (6,)), ((2, 3, 1), (3, 1, 5), (6,)),
            ((2, 1, 3), (4, 12, 1), (6,)), ((2, 1, 3), (4, 3, 1), (6,)), ((2, 3, 1), (3, 1, 7), (3, 2)),
            ((1,), (7,), ()), ((), (), (1, 1)), ((), (), ()), ((1, 1), (3, 0), (1,)), ((2, 1), (5, 0), (2,)),
            ((2, 1, 1, 2), (2, 8, 0, 1), (4,)), ((2, 1, 1, 2), (4, 2, 1, 1), (4,)), ((1, 6), (1, 1), (2, 1, 3)),
        ],
    )  # fmt: skip


def test_expanded(view_strides):
    """Stride 0: merges with stride 0, and with nothing else."""
    compare(
        view_strides,
        [
            ((2, 3), (0, 0), (6,)), ((2, 3), (0, 0), (3, 2)), ((2, 3), (0, 1), (6,)), ((2, 3), (1, 0), (6,)),
            ((2, 3), (3, 0), (6,)), ((4, 3), (0, 1), (2, 2, 3)), ((4, 3), (0, 1), (2, 6)), ((2, 3, 4), (0, 4, 1), (2, 12)),
            ((2, 3, 4), (1, 0, 0), (2, 12)), ((2, 3, 4), (1, 0, 0), (6, 4)), ((2, 3, 4), (1, 0, 0), (2, 6, 2)),
        ],
    )  # fmt: skip


def test_minus_one(view_strides, rng):
    """A size of -1 is worked out, wherever it stands."""
    cases = [((2, 3), (3, 1), (-1,)), ((2, 3), (7, 2), (-1,)), ((6, 4), (1, 6), (2, -1, 4))]
    cases += [
        ((6, 4), (1, 6), (-1, 6)),
        ((5,), (3,), (5, -1)),
        ((), (), (-1,)),
        ((4, 3), (6, 1), (-1, 3)),
    ]
    for _ in range(40):
        size, stride = draw_layout(rng, draw_int(rng, 1, 4))
        new_size = list(cuts(rng, torch.Size(size).numel())) or [1]
        new_size[draw_int(rng, 0, len(new_size) - 1)] = -1
        cases.append((size, stride, tuple(new_size)))
    compare(view_strides, cases)


def test_no_elements(view_strides):
    """Without elements no view is refused; with them it may be."""
    compare(
        view_strides,
        [
            ((0,), (1,), (0, 5)), ((2, 0), (7, 3), (0,)), ((2, 0, 3), (1, 1, 1), (3, 0, 2)), ((0, 4), (1, 9), (-1, 4)),
            ((3, 0), (2, 2), (0, 3)), ((0,), (4,), (7, 0, 7)), ((0, 3), (1, 2), (2, -1, 5)), ((2, 3), (1, 2), (6,)),
            ((2, 3), (1, 2), (2, 3)), ((2, 3), (4, 1), (1, 6)),
        ],
    )  # fmt: skip


def test_does_not_fit(view_strides):
    """A new size with more or fewer elements, or with a -1 that has no answer, raises `RuntimeError`."""
    for case in (
        ((6,), (1,), (5,)), ((6,), (1,), (2, 4)), ((6,), (1,), (4, -1)), ((6,), (1,), (-1, -1)),
        ((6,), (1,), (-2, -3)), ((6,), (1,), (-6,)), ((0,), (1,), (0, -1)), ((6,), (1,), (0, -1)), ((6,), (1,), ()),
        ((0,), (1,), ()), ((), (), (2,)), ((), (), (0,)), ((2, 3), (1, 2), (5, 1)), ((0, 2), (2, 1), (3, 1)),
        ((6,), (1,), (-1, -1, -6)), ((0, 3), (3, 1), (-1, 0)), ((6,), (1,), (3, -1, -2)), ((6,), (2,), (12,)),
    ):  # fmt: skip
        what = "This must raise a RuntimeError."
        row = ("call", f"view_stride{case}")
        assert_raises(view_strides.ask([case]), "RuntimeError", what, row)
    compare(view_strides, [((6,), (1,), (3, 2)), ((6,), (1,), (-1,)), ((6,), (1,), (1, 6))])


def test_any_layout(view_strides, rng):
    """600 random layouts, cut anew at random."""
    cases = []
    for _ in range(600):
        size, stride = draw_layout(rng, draw_int(rng, 1, 5))
        cases.append((size, stride, cuts(rng, torch.Size(size).numel())))
    compare(view_strides, cases)
