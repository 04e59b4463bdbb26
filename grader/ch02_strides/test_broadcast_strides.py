"""Checks of `broadcast_strides`: alignment, strides that stay, nought, and sizes that do not fit."""

import torch

from grader import Mismatch, assert_equal, compared, draw_int, draw_layout, gate
from grader.ch02_strides.odd_layouts import assert_each


def compare(broadcasted, cases):
    """Compare with `torch.broadcast_tensors`."""
    got = broadcasted.ask(cases).value
    expected = []
    for layouts in cases:
        views = torch.broadcast_tensors(*(torch.empty_strided(*layout) for layout in layouts))
        common = tuple(views[0].shape)
        expected.append((common, tuple(_judged(view.stride(), common) for view in views)))
    assert_each(
        [_seen(answer) for answer in got],
        expected,
        [{"call": f"broadcast_strides({[tuple(each) for each in layouts]})"} for layouts in cases],
    )


def _judged(stride, common):
    """Replace strides that are free."""
    if not isinstance(stride, list | tuple) or len(stride) != len(common):
        return stride
    return tuple(0 if n in (0, 1) else s for s, n in zip(stride, common, strict=True))


def _seen(answer):
    """Return what came back with free strides replaced, or as it is."""
    try:
        common, strides = answer
        return tuple(common), tuple(_judged(stride, tuple(common)) for stride in strides)
    except (TypeError, ValueError):
        return answer


def _lengths(answer):
    """Return the lengths of an answer's parts, or what came as it is."""
    try:
        return [len(part) for part in answer]
    except TypeError:
        return answer


def plain(*sizes):
    """Return layouts of fresh tensors."""
    return [(size, torch.empty(size).stride()) for size in sizes]


@gate
def test_pair(broadcasted):
    """Returns a size, and strides for each tensor."""
    (got,) = broadcasted.ask([plain((3, 1), (1, 4))]).value
    assert_equal(
        _lengths(got), [2, 2], "A pair of the common size and a list of strides is asked for."
    )


def test_two(broadcasted):
    """Two tensors with equally many dimensions."""
    cases = [((3, 1), (1, 4)), ((2, 3), (2, 3)), ((2, 1, 4), (1, 3, 4)), ((5, 1), (5, 6))]
    compare(broadcasted, [plain(*case) for case in [*cases, ((1, 7), (2, 7)), ((6,), (1,))]])


def test_from_the_right(broadcasted):
    """Tensors with fewer dimensions, and with none, get new ones in front."""
    cases = [((3, 1), (4,)), ((4,), (3, 4)), ((), (2, 3)), ((3, 3), (3,)), ((5, 1, 2), (4, 1))]
    compare(broadcasted, [plain(*case) for case in [*cases, ((2, 2, 2), (2,)), ((), ())]])


def test_several(broadcasted, rng):
    """One, three and more tensors together."""
    cases = [((2, 1, 3), (4, 1), ()), ((2, 3),), ((1,), (1, 1), (1, 1, 1)), ((5,), (1,), (4, 1))]
    compare(broadcasted, [plain(*case) for case in cases])
    compare(broadcasted, [_fitting(rng, draw_int(rng, 3, 5)) for _ in range(20)])


def test_strides_stay(broadcasted):
    """Strides of transposed, sliced and expanded tensors are kept where nothing repeats."""
    x = torch.empty(6, 8, 5)
    pairs = [
        (x.permute(2, 0, 1), x[0, :1, :1]), (x[::2, :4, :1], x[0, :4]), (x[0].t(), x[:1, 0, :1]),
        (x[:1].expand(4, 8, 5), x[0, :, :1].expand(8, 5)), (x[:, 1:2, ::2], x[0, :, 2:5]),
    ]  # fmt: skip
    compare(broadcasted, [[(tuple(y.shape), y.stride()) for y in pair] for pair in pairs])


def test_no_elements(broadcasted):
    """A size of 0 goes with 0 and with 1; what stands beside it follows the rule as always."""
    cases = [((0,), (1,)), ((3, 1), (0,)), ((2, 0), (1, 0)), ((1, 0, 4), (3, 1, 1)), ((0, 3), (3,))]
    compare(broadcasted, [plain(*case) for case in cases])
    compare(broadcasted, [plain((4, 1), (1, 3)), plain((1, 0), (4, 1), (4, 0))])


def test_refused(broadcasted):
    """Sizes that do not fit raise `RuntimeError`, wherever they stand; sizes that fit do not."""
    missed = []
    for sizes in (
        ((3,), (4,)), ((2, 3), (2,)), ((3, 1), (1, 4), (3, 3)), ((0,), (3,)), ((2,), (0,)),
        ((2, 3, 4), (3, 3, 4)), ((2, 1), (3, 1), (1, 1)), ((4, 1, 2), (3,)), ((6,), (3,)),
        ((2,), (1,), (3,)),
    ):  # fmt: skip
        raised = broadcasted.ask([plain(*sizes)]).raised
        if raised is None or not raised.is_a("RuntimeError"):
            missed.append((sizes, "no exception" if raised is None else raised.type))
    compared(missed)  # all were asked: which slip through tells why
    for sizes, came in missed[:1]:
        rows = (("call", f"broadcast_strides({plain(*sizes)})"), ("got", came))
        raise Mismatch("These sizes must raise a RuntimeError.", rows)
    compare(broadcasted, [plain((3, 1), (1, 4), (3, 4)), plain((2, 1, 2), (3, 1))])


def test_any_layout(broadcasted, rng):
    """150 random pairs and triples with strides of all kinds."""
    compare(broadcasted, [_fitting(rng, draw_int(rng, 2, 3)) for _ in range(150)])


def _fitting(rng, count):
    """Return layouts whose sizes fit: some dimensions cut off in front, some replaced by 1."""
    common, _ = draw_layout(rng, draw_int(rng, 1, 4), ones=False)
    layouts = []
    for _ in range(count):
        size = tuple(1 if draw_int(rng, 0, 2) == 0 else n for n in common)
        size = size[draw_int(rng, 0, len(size)) :] if draw_int(rng, 0, 1) else size
        layouts.append((size, tuple(draw_int(rng, 0, 40) for _ in size)))
    return layouts
