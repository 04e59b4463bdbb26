"""Checks of `is_view`: what never depends on the layout, and what does."""

import torch

from grader import assert_equal, draw_int, draw_layout, gate
from grader.ch02_strides.odd_layouts import assert_each

FRESH = ((2, 3, 4), (12, 4, 1))
TURNED = ((4, 3, 2), (1, 4, 12))


def compare(predictions, cases):
    """Compare with what the operation does."""
    got = predictions.ask(cases).value
    assert_each(
        got,
        [shares(*case) for case in cases],
        [{"call": _written(*case)} for case in cases],
    )


def _written(size, stride, op, args):
    return f"is_view({', '.join(map(repr, (size, stride, op, *args)))})"


def shares(size, stride, op, args):
    """Run the operation, and compare storages."""
    x = torch.empty_strided(size, stride)
    result = getattr(torch, op)([x]) if op in ("stack", "cat") else getattr(x, op)(*args)
    result = result[0] if op in ("chunk", "split") else result
    return result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def on(layouts, op, *args):
    return [(*layout, op, args) for layout in layouts]


@gate
def test_bool(predictions):
    """Returns a `bool`."""
    got = predictions.ask([(*FRESH, "transpose", (0, 1)), (*FRESH, "repeat", (1, 1, 1))]).value
    assert_equal([type(answer).__name__ for answer in got], ["bool"] * 2, "It is a `bool`.")


def test_whatever_the_layout(predictions):
    """Operations that always make a view, and operations that always copy."""
    both = [FRESH, TURNED]
    compare(
        predictions,
        [
            *on(both, "transpose", 0, 2), *on(both, "permute", 2, 0, 1), *on(both, "unsqueeze", 1),
            *on(both, "squeeze"), *on(both, "narrow", 1, 1, 2), *on(both, "select", 0, -1),
            *on(both, "unfold", 1, 2, 1), *on(both, "chunk", 2), *on(both, "split", 2, 1),
            *on([FRESH], "expand", 5, 2, -1, 4), *on([TURNED], "broadcast_to", 5, 4, 3, 2),
            *on(both, "diagonal", 0, 1, 2), *on(both, "repeat", 2, 1, 1), *on(both, "repeat", 1, 1, 1),
            *on(both, "flip", 0), *on(both, "roll", 1, 0), *on(both, "clone"), *on(both, "stack"),
            *on(both, "cat"), *on([((1,), (1,))], "flip", 0), *on([((1,), (1,))], "repeat", 1),
        ],
    )  # fmt: skip


def test_reshape(predictions):
    """`reshape`, of layouts that can be viewed and layouts that cannot; to the same size, too."""
    gaps = ((4, 3), (6, 1))
    compare(
        predictions,
        [
            *on([FRESH, TURNED], "reshape", 6, 4), *on([FRESH, TURNED], "reshape", 4, 3, 2),
            *on([TURNED], "reshape", 2, 2, 3, 1, 2), *on([gaps], "reshape", 12), *on([gaps], "reshape", 2, 2, 3),
            *on([gaps], "reshape", 2, -1), *on([gaps], "reshape", 4, -1), *on([gaps], "reshape", 4, 3),
            *on([((2, 3), (0, 0))], "reshape", 6), *on([((2, 3), (0, 1))], "reshape", 6),
            *on([((1, 5), (2, 3))], "reshape", 5, 1), *on([((20,), (2,))], "reshape", 2, 5, -1),
        ],
    )  # fmt: skip


def test_flatten(predictions):
    """`flatten` of all dimensions and of some, counted from either end, and `ravel`."""
    images = [
        ((2, 3, 4, 5), (60, 20, 5, 1)),
        ((2, 3, 4, 5), (60, 1, 15, 3)),
        ((2, 3, 4, 2), (60, 20, 5, 2)),
    ]
    cases = [*on(images, "flatten"), *on(images, "ravel"), *on(images, "flatten", 1)]
    for first, last in (
        (1, 2),
        (2, 3),
        (0, 1),
        (-2, -1),
        (1, -1),
        (2, 2),
        (0, -2),
        (0, 0),
        (-3, 2),
    ):
        cases += on(images, "flatten", first, last)
    cases += [*on([TURNED], "flatten", -2), *on([FRESH], "flatten", -2), *on(images, "flatten", -1)]
    cases += [*on([((5,), (3,))], "flatten"), *on([((5,), (0,))], "ravel")]
    compare(predictions, cases)


def test_contiguous(predictions):
    """`contiguous`: the tensor itself or a copy."""
    layouts = [FRESH, TURNED, ((2, 3), (4, 1)), ((4,), (2,)), ((4,), (1,)), ((2, 3), (0, 1))]
    compare(predictions, on([*layouts, ((2, 3, 4, 5), (60, 1, 15, 3))], "contiguous"))


def test_size_one(predictions):
    """Sizes of 1, whose strides mean nothing."""
    odd = [((8, 1, 6), (6, 50, 1)), ((8, 1, 6), (7, 6, 1)), ((1, 4), (1, 1)), ((4, 1), (1, 9))]
    odd += [
        ((3, 1, 1), (2, 0, 5)),
        ((1, 1, 1), (3, 4, 5)),
        ((2, 1, 3), (1, 6, 2)),
        ((4, 1), (2, 2)),
    ]
    cases = [
        *on(odd, "flatten"),
        *on(odd, "contiguous"),
        *on(odd, "ravel"),
        *on(odd, "reshape", -1),
    ]
    compare(predictions, [*cases, *on(odd, "flatten", 1), *on(odd, "flatten", 0, 1)])


def test_any_layout(predictions, rng):
    """300 random layouts, each with one of the operations that look at it."""
    cases = []
    for number in range(300):
        size, stride = draw_layout(rng, draw_int(rng, 1, 4))
        first = draw_int(rng, 0, len(size) - 1)
        last = draw_int(rng, first, len(size) - 1)
        whole, rest = size[: first + 1], torch.Size(size[first + 1 :]).numel()
        calls = [
            ("flatten", (first, last)),
            ("contiguous", ()),
            ("reshape", (*whole, rest)),
            ("ravel", ()),
        ]
        cases.append((size, stride, *calls[number % 4]))
    compare(predictions, cases)
