"""Checks of `tensor_of`: sizes, dtypes, what is refused, and what is allocated."""

import torch

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_raises,
    assert_same_bits,
    assert_tensor,
    claimed,
    draw_int,
    draw_one,
    gate,
    points,
)

KINDS = (bool, int, float, complex)


def call(data, dtype=None):
    return f"tensor_of({data!r}{f', {dtype}' if dtype else ''})"


def truth(cases):
    """Return PyTorch's own tensors."""
    return [torch.tensor(data, dtype=dtype[0] if dtype else None) for data, *dtype in cases]


def compare(got, cases, expected=None, before=""):
    """Compare with PyTorch's own tensors."""
    for result, right, case in zip(got, expected or truth(cases), cases, strict=True):
        with about(("call", before + call(*case))):
            assert_tensor(result, dtype=right.dtype, shape=right.shape)
            assert_same_bits(result, right)
            if not result.is_contiguous():
                raise Mismatch("The result is not contiguous.")


def nested(rng, size, draw):
    """Return nested lists and tuples of that size, with what `draw()` gives as items."""
    if not size:
        return draw()
    items = [nested(rng, size[1:], draw) for _ in range(size[0])]
    return tuple(items) if draw_int(rng, 0, 1) else items


def number(rng, kind):
    """Return a number that all dtypes of its category and above hold exactly."""
    whole = draw_int(rng, -99, 99)
    if kind is bool:
        return bool(whole % 2)
    return whole if kind is int else whole / 4 if kind is float else complex(whole, whole / 2)


@gate
def test_tensor(tensors_of):
    """Returns a tensor of the size of the nested list."""
    for got, size in zip(
        tensors_of.ask([([1, 2, 3],), ([[1], [2]],)]).value, ((3,), (2, 1)), strict=True
    ):
        assert_tensor(got, shape=size)


def test_values(tensors_of, rng):
    """Numbers of one kind, in lists and tuples of any depth, each where it belongs."""
    cases = [
        ([[1, 2, 3], [4, 5, 6]],),
        (((1.5,), (2.5,)),),
        ([2**53 + 1, -(2**62) - 1],),
        (5,),
        (-2.5,),
    ]
    for kind in KINDS:
        for dims in range(5):
            size = [draw_int(rng, 1, 3) for _ in range(dims)]
            cases.append((nested(rng, size, lambda kind=kind: number(rng, kind)),))
    compare(tensors_of.ask(cases).value, cases)


@points(4)
def test_dtype_of_all(tensors_of, rng):
    """The dtype is that of the highest category among all numbers, wherever it stands."""
    cases = [
        ([True, 1],), ([1, True],), ([1, 2.5],), ([2.5, 1],), ([1, 2j],), ([2j, 1.5],), ([True, 2.5],), ([2j, True],),
        ([[1, 2], [3, 4.5]],), ([[1.5, 2], [3, 4]],), ([[1, 2], [3.5, 4]],), ([[True, False], [True, 0]],),
        ([[[1], [2]], [[3], [4j]]],), ([1, 2.5, 3, 4j, 5, True],), ([1, 2.5, 3],), (True,), (2j,),
    ]  # fmt: skip
    for _ in range(60):
        size = [draw_int(rng, 1, 3) for _ in range(draw_int(rng, 1, 4))]
        most, rare = draw_one(rng, KINDS), draw_one(rng, KINDS)

        def draw(most=most, rare=rare):
            return number(rng, rare if draw_int(rng, 0, 5) == 0 else most)

        cases.append((nested(rng, size, draw),))
    compare(tensors_of.ask(cases).value, cases)


def test_default_dtype(tensors_of_under):
    """Floats, complex numbers and nothing at all are of the default dtype of the moment."""
    plain = [([1, 2.5],), ([1, True],), ([],), ([True],)]
    # PyTorch itself has no tensor for complex numbers under bfloat16
    for default, cases in (
        (torch.float64, [*plain, ([[1j], [2]],)]),
        (torch.bfloat16, plain),
    ):
        before = torch.get_default_dtype()
        torch.set_default_dtype(default)
        try:
            expected = truth(cases)
        finally:
            torch.set_default_dtype(before)
        got = tensors_of_under.ask(default, cases).value
        compare(got, cases, expected, f"torch.set_default_dtype({default}); ")


def test_empty(tensors_of):
    """An empty list or tuple is the last dimension, of size 0."""
    cases = [
        ([],),
        ((),),
        ([[], []],),
        ([[[]]],),
        ([[(), ()], [[], []], ([], [])],),
        ([], torch.int8),
    ]
    compare(tensors_of.ask(cases).value, cases)


def test_given_dtype(tensors_of):
    """The dtype asked for is taken; a number that `fill_` refuses is an error."""
    cases = [
        ([1, 2, 3], torch.float32), ([[1.75], [-1.75]], torch.int16), ([-1, 255], torch.uint8), ([2, 0, 0.5], torch.bool),
        ([True, 2, 2.5], torch.complex64), ([1, 2.5], torch.float64), ([2**24 + 1], torch.float32), (3, torch.bfloat16),
        ([0.1, 1 / 3], torch.float64), ([70000.0], torch.float32),
    ]  # fmt: skip
    compare(tensors_of.ask(cases).value, cases)
    for case in (([1, 256], torch.uint8), ([[128]], torch.int8)):
        what = "`fill_` refuses this number, and its error must get through."
        assert_raises(tensors_of.ask([case]), "RuntimeError", what, ("call", call(*case)))


REFUSED = [
    [[1, 2], [3]], [[1], [2, 3]], [[1, 2], [3], [4, 5, 6]], [[1, 2], []], [[[1, 2], [3, 4]], [[5, 6], [7]]],
    [[[1], [2]], [[3]]], [[1, 2], 3], [1, [2]], [[1], [[2]]], [[[1]], [2]], [1, ()], [[[1], 2]], ([1, 2], (3, 4, 5)),
]  # fmt: skip


def test_not_rectangular(tensors_of):
    """Lists of unequal lengths, and numbers beside lists, are refused with `ValueError` or `TypeError`."""
    for data in REFUSED:
        what = "This is not rectangular, and must raise a ValueError or a TypeError."
        assert_raises(
            tensors_of.ask([(data,)]), ("ValueError", "TypeError"), what, ("call", call(data))
        )
    compare(tensors_of.ask([([[1, 2], [3, 4]],)]).value, [([[1, 2], [3, 4]],)])


def test_after_an_empty_list(tensors_of):
    """What stands beside an empty list is not lost: it is refused."""
    for data in ([[], [1]], [[], 1], [[[], []], [[], [2.5]]]):
        what = "The first items give a size without elements, and here is a number left over."
        rows = ("call", call(data))
        assert_raises(tensors_of.ask([(data,)]), ("ValueError", "TypeError"), what, rows)
    compare(tensors_of.ask([([[], []],)]).value, [([[], []],)])


def test_no_end(endless, rows_that_are_one, tensors_of):
    """A list that is its own first item raises `ValueError`."""
    for depth in (1, 3):
        nested = f"{'[' * (depth - 1)}inner{']' * (depth - 1)}"
        rows = ("call", f"inner = []; inner.append({nested}); tensor_of({nested})")
        what = "A list that is its own first item must raise a ValueError."
        assert_raises(endless.ask(depth), "ValueError", what, rows)
    ends = [([[1], [1]],), ([[[2]]],)]  # equal lists, and lists of one item, do have an end
    compare(tensors_of.ask(ends).value, ends)
    with about(("call", "row = [1, 2]; tensor_of([row, row, row])")):
        assert_same_bits(rows_that_are_one.ask([1, 2], 3).value, torch.tensor([[1, 2]] * 3))


@claimed
def test_bytes(making_bytes):
    """Allocates the bytes of the result, once, and no others."""
    cases = [
        ([[1, 2, 3], [4, 5, 6]],),
        ([1, 2.5],),
        ([[[1, 2], [3, 4j]]],),
        ([7] * 40, torch.int8),
        (5,),
        ([[], []],),
    ]
    expected = [x.numel() * x.element_size() for x in truth(cases)]
    for got, right, case in zip(making_bytes.ask(cases).value, expected, cases, strict=True):
        with about(("call", call(*case))):
            assert_equal(got, right, "So many bytes are not to be allocated.")
