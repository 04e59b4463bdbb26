"""Checks of `result_dtype`: each level for itself, then the levels against each other."""

from itertools import product

import torch

from grader import assert_equal, draw_int, draw_one, gate, points
from grader.ch09_dispatch.operands import (
    DTYPES,
    NUMBERS,
    code,
    promoted,
    with_dimensions,
    without_dimensions,
)
from grader.ch09_dispatch.simplest import assert_each


def call(operands):
    return f"result_dtype({', '.join(map(code, operands))})"


def compare(got, cases):
    """Compare with what PyTorch gives."""
    assert_each(got, [promoted(operands) for operands in cases], list(map(call, cases)))


@gate
def test_dtype(result_dtypes):
    """Returns a dtype."""
    got = result_dtypes.ask([(torch.zeros(2),), (torch.zeros(2), torch.zeros(2))]).value
    assert_equal([type(dtype) for dtype in got], [torch.dtype] * 2, "No dtype came back.")


def test_categories(result_dtypes):
    """Tensors with dimensions: the higher category wins, whatever the widths."""
    named = [(x.dtype, x) for x in with_dimensions()]
    cases = [(x, y) for (a, x), (b, y) in product(named, named) if _category(a) != _category(b)]
    compare(result_dtypes.ask(cases).value, cases)


def test_widths(result_dtypes):
    """Tensors with dimensions of one category: the wider dtype, and the next one in a tie."""
    named = [(x.dtype, x) for x in with_dimensions()]
    cases = [(x, y) for (a, x), (b, y) in product(named, named) if _category(a) == _category(b)]
    compare(result_dtypes.ask(cases).value, cases)


def _category(dtype):
    if dtype.is_complex:
        return 3
    return 2 if dtype.is_floating_point else int(dtype is not torch.bool)


def test_levels(result_dtypes):
    """A 0-dim tensor beside a tensor with dimensions lends its category, and never its width."""
    pairs = product(with_dimensions(), without_dimensions())
    cases = [pair for x, y in pairs for pair in ((x, y), (y, x))]
    compare(result_dtypes.ask(cases).value, cases)


def test_numbers(result_dtypes):
    """A Python number beside any tensor lends its category; a float is of the default dtype."""
    pairs = product(with_dimensions() + without_dimensions(), NUMBERS)
    cases = [pair for x, y in pairs for pair in ((x, y), (y, x))]
    compare(result_dtypes.ask(cases).value, cases)


def test_one_element(result_dtypes):
    """A tensor of one element, or of none, is one with dimensions."""
    sizes = [(1,), (1, 1), (0,), (2, 0)]
    cases = [
        (x, torch.zeros((), dtype=dtype))
        for size in sizes
        for x in with_dimensions(size)
        for dtype in (torch.int64, torch.float64)
    ]
    compare(result_dtypes.ask(cases).value, cases)


def test_default_dtype(result_dtypes_under):
    """Under another default dtype, Python's floats and complex numbers are of another dtype."""
    cases = [
        *product([*with_dimensions(), *without_dimensions()], [2.5, 2j]),
        *product([2.5, 2j], repeat=2),
    ]
    for default in (torch.float64, torch.float16, torch.bfloat16):
        before = torch.get_default_dtype()
        torch.set_default_dtype(default)
        try:
            expected = [promoted(operands) for operands in cases]
        finally:
            torch.set_default_dtype(before)
        under = f"torch.set_default_dtype({default}); "
        calls = [under + call(operands) for operands in cases]
        assert_each(result_dtypes_under.ask(default, cases).value, expected, calls)


@points(3)
def test_many(result_dtypes, rng):
    """The lower levels without a higher one, and three to six operands of all levels in any order."""
    cases = [(x,) for x in (*with_dimensions(), *without_dimensions(), *NUMBERS)]
    cases += [*product(without_dimensions(), repeat=2), *product(NUMBERS, repeat=2)]
    # what two of them give together must not take part as an operand of their level
    cases += [
        (torch.zeros(2, dtype=torch.int8), torch.zeros((), dtype=torch.float64), torch.zeros(2, dtype=torch.float16)),
        (torch.zeros((), dtype=torch.float64), torch.zeros(2, dtype=torch.int8), torch.zeros(2, dtype=torch.float16)),
        (torch.zeros(2, dtype=torch.int8), 2.5, torch.zeros(2, dtype=torch.float16)),
        (2.5, torch.zeros(2, dtype=torch.int8), torch.zeros((), dtype=torch.float16)),
        (2j, torch.zeros((), dtype=torch.float64), torch.zeros(2, dtype=torch.int64)),
        (torch.zeros(2, dtype=torch.bool), torch.zeros((), dtype=torch.uint8), 3, torch.zeros((), dtype=torch.int8)),
        (torch.zeros(2, dtype=torch.float16), torch.zeros((), dtype=torch.float64), 2j),
    ]  # fmt: skip
    for _ in range(300):
        operands = []
        for _ in range(draw_int(rng, 3, 6)):
            level = draw_int(rng, 0, 2)
            tensor = torch.zeros([2] * min(level, 1), dtype=draw_one(rng, DTYPES))
            operands.append(tensor if level < 2 else draw_one(rng, NUMBERS))
        cases.append(tuple(operands))
    compare(result_dtypes.ask(cases).value, cases)
