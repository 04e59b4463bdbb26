"""Checks of `overlaps`: each asks for tensors that overlap and for some that do not."""

import math
from itertools import product

import torch

from grader import about, assert_equal, compared, draw_int, draw_order, gate


def truth(size, stride):
    """Visit every index."""
    cells = [
        sum(i * step for i, step in zip(index, stride, strict=True))
        for index in product(*map(range, size))
    ]
    return len(set(cells)) < len(cells)


def compare(overlap_answers, layouts, answers=None):
    layouts = [(tuple(size), tuple(stride)) for size, stride in layouts]
    got = overlap_answers.ask(layouts).value
    if answers is None:
        answers = [truth(size, stride) for size, stride in layouts]
    compared(got, answers)  # all answers: which of them are wrong tells why
    for (size, stride), said, right in zip(layouts, got, answers, strict=True):
        with about(("call", f"overlaps({size}, {stride})")):
            assert_equal(said, right, "Whether two indices meet is answered wrongly.")


def both_kinds(make, wanted, most=400):
    """Return layouts from `make()`: `wanted` that overlap and as many that do not."""
    found = {True: [], False: []}
    while most and min(map(len, found.values())) < wanted:
        most -= 1
        layout = make()
        kind = found[truth(*layout)]
        if len(kind) < wanted:
            kind.append(layout)
    return found[True] + found[False]


@gate
def test_answers(overlap_answers):
    """Answers with `True` or `False`."""
    got = overlap_answers.ask([((3,), (1,)), ((3,), (0,))]).value
    assert_equal([type(said) for said in got], [bool, bool], "The answers are of other types.")


def test_expanded(overlap_answers, rng):
    """Stride 0 overlaps, unless the size is 1 or nothing is there at all."""
    n, m = draw_int(rng, 2, 5), draw_int(rng, 2, 5)
    layouts = [
        ((n,), (0,)),
        ((1,), (0,)),
        ((), ()),
        ((0,), (0,)),
        ((n, 1, m), (m, 0, 1)),
        ((n, m), (0, 1)),
        ((n, m), (1, 0)),
        ((n, 0, m), (0, 1, 1)),
        ((1, 1, 1), (0, 0, 0)),
        ((n, 1, m), (1, 1, n)),
        ((2, 2, n), (0, 0, 1)),
    ]
    compare(overlap_answers, layouts)


def test_windows_and_slices(overlap_answers, rng):
    """Dense, permuted and cut-out tensors do not overlap; windows do where they share cells."""
    whole = torch.zeros(6, 7, 8)
    step = draw_int(rng, 1, 2)
    views = [
        whole,
        whole.permute(*draw_order(rng, 3)),
        whole[:, ::2, 1::3],
        whole[2:4, 3:4, 5:],
        whole.unfold(2, 3, step),
        whole.unfold(2, 3, 3),
        whole.unfold(2, 3, 4).transpose(0, 3),
        whole[0].unfold(0, 2, 2).unfold(1, 2, 2),
        whole[0].unfold(0, 2, 2).unfold(1, 3, 2).permute(3, 0, 2, 1),
        whole[0].unfold(0, 2, 1).unfold(1, 2, 2),
    ]
    compare(overlap_answers, [(view.shape, view.stride()) for view in views])


def test_two_strides(overlap_answers, rng):
    """Two dimensions that step past each other: sizes decide whether they meet."""
    layouts = [((2, 2), (3, 3))]
    for _ in range(12):
        first, second, common = draw_int(rng, 2, 7), draw_int(rng, 2, 7), draw_int(rng, 1, 3)
        shared = math.gcd(first, second)
        meet = (second // shared + 1, first // shared + 1)  # the smallest sizes that meet
        for less in ((0, 0), (1, 0), (0, 1)):
            size = [max(1, n - fewer) for n, fewer in zip(meet, less, strict=True)]
            layouts.append((size, (first * common, second * common)))
    compare(overlap_answers, layouts)


def test_any_strides(overlap_answers, rng):
    """Three to five dimensions with any strides, half of them with overlap."""

    def make():
        count = draw_int(rng, 3, 5)
        size = [draw_int(rng, 1, 4) for _ in range(count)]
        return size, [draw_int(rng, 1, 40) for _ in range(count)]

    compare(overlap_answers, [((2, 1, 3), (9, 2, 9)), *both_kinds(make, 25)])


def nested(rng, inner):
    """Return `inner` with dimensions of large sizes around it that tower above it."""
    size, stride = (list(part) for part in inner)
    for _ in range(3):
        reach = sum(step * (count - 1) for count, step in zip(size, stride, strict=True))
        where = draw_int(rng, 0, len(size))
        size.insert(where, draw_int(rng, 50_000, 3_000_000))
        stride.insert(where, reach + draw_int(rng, 1, 3))
    where = draw_int(rng, 0, len(size))
    size.insert(where, 1)
    stride.insert(where, max(stride) + 1)  # towers above nothing, and is never used
    return size, stride


def test_large(overlap_answers, rng):
    """Millions of rows, around a few strides that decide."""
    side = draw_int(rng, 8_000, 10_000)
    inner = [
        ((3, 3), (2, 3)),
        ((4, 3), (2, 3)),
        ((2, 2, 2), (3, 5, 7)),
        ((2, 2, 2), (3, 5, 8)),
        ((4, 4), (4, 1)),
        ((side, side), (1, 1)),
        ((side, 2), (2, 1)),
        ((side, 2), (2, 2 * side - 2)),
        ((side, 3), (2, 2 * side - 1)),
        ((1, 7), (0, 5)),
    ]
    answers = [False, True, False, True, False, True, False, True, False, False]
    compare(overlap_answers, inner, answers)
    compare(overlap_answers, [nested(rng, layout) for layout in inner], answers)


def test_many_strides(overlap_answers, rng):
    """A dozen dimensions of two or three, sums that all differ or that nearly do."""
    powers = [3**k for k in range(9)]
    apart = ([3] * 9, powers)
    meets = ([3] * 8 + [4], [*powers[1:], 1])
    doubled = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048]
    order = draw_order(rng, 12)
    sums = ([2] * 12, [doubled[k] for k in order])
    off = ([2] * 12, [doubled[k] - (k == 11) for k in order])
    # no number is a sum of others, and yet two sums are equal: 3 + 5 + 14 = 9 + 13
    tricky = ([2] * 5, [3, 5, 9, 13, 14])
    conway = ([2] * 7, [20, 31, 37, 40, 42, 43, 44])
    layouts = [apart, meets, sums, off, tricky, conway]
    compare(overlap_answers, layouts)
