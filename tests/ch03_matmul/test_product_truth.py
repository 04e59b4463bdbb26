"""Products: the reference solutions agree with torch on thousands of shapes and equations."""

import struct
from functools import partial
from itertools import pairwise

import pytest
import torch

from grader import awkward_tensor, draw_int, draw_one
from grader.ch03_matmul.equations import any_equation
from grader.ch03_matmul.shapes import any_pair, true_shape
from grader.inside.instruments.flops import watch_flops
from tests import references

reference = partial(references.reference, "ch03_matmul")


@pytest.fixture
def rng():
    return torch.Generator().manual_seed(3)


def test_shapes_are_torchs(rng):
    matmul_shape, refused = reference("matmul_shape"), 0
    for _ in range(3000):
        a, b = any_pair(rng)
        try:
            shape = matmul_shape(a, b)
        except ValueError:
            shape, refused = "ValueError", refused + 1
        assert shape == true_shape(a, b), (a, b)
    assert refused > 200


def test_products_are_torchs(rng):
    matmul, folded, refused = reference("matmul"), reference("broadcast_matmul"), 0
    for _ in range(1500):
        a, b = (awkward_tensor(rng, shape) for shape in any_pair(rng))
        try:
            expected = a @ b
        except RuntimeError:
            refused += 1
            with pytest.raises((ValueError, RuntimeError, IndexError)):
                matmul(a, b)
            continue
        assert torch.equal(matmul(a, b), expected), (a.shape, b.shape)
        if a.dim() > 1 and b.dim() > 1:
            assert torch.equal(folded(a, b), expected), (a.shape, b.shape)
    assert refused > 100


def test_equations_are_torchs(rng):
    einsum, refused = reference("einsum"), 0
    for round in range(1500):
        equation, operands = any_equation(rng, (torch.float32, torch.float64)[round % 2])
        try:
            expected = torch.einsum(equation, *operands)
        except RuntimeError:
            refused += 1
            with pytest.raises(ValueError):  # noqa: PT011 (the messages are ours to choose)
                einsum(equation, *operands)
            continue
        got = einsum(equation, *operands)
        assert got.dtype is expected.dtype and torch.equal(got, expected), equation
    assert refused < 100


def test_refused_equations(rng):
    einsum, refused = reference("einsum"), 0
    for _ in range(2000):
        equation, operands = any_equation(rng, torch.float32)
        where = draw_int(rng, 0, len(equation))
        other = draw_one(rng, "bdaZ.,->1 ")
        broken = equation[:where] + other + equation[where + 1 :]
        try:
            expected = torch.einsum(broken, *operands)
        except RuntimeError:
            refused += 1
            with pytest.raises(ValueError):  # noqa: PT011 (the messages are ours to choose)
                einsum(broken, *operands)
            continue
        assert torch.equal(einsum(broken, *operands), expected), broken
    assert refused > 200


def orders(first, last):
    """Yield every way to put brackets around matrices first to last."""
    if first == last:
        yield first
    for split in range(first, last):
        for left in orders(first, split):
            for right in orders(split + 1, last):
                yield left, right


def multiplied(order, matrices):
    """Return the product of matrices in an order."""
    if isinstance(order, int):
        return matrices[order]
    return torch.mm(multiplied(order[0], matrices), multiplied(order[1], matrices))


def test_best_order_by_counting_flops(rng):
    best_order = reference("best_order")
    for _ in range(8):
        count = draw_int(rng, 1, 4)
        sizes = torch.randint(1, 20, (count + 1,), generator=rng).tolist()
        matrices = [torch.zeros(m, n) for m, n in pairwise(sizes)]
        spent = {}
        for order in orders(0, count - 1):
            with watch_flops() as flops:
                multiplied(order, matrices)
            spent[order] = flops.total
        least, order = best_order(sizes)
        assert least == spent[order] == min(spent.values())


def test_strassen_on_whole_numbers(rng):
    strassen = reference("strassen")
    for n in (*range(1, 20), 33, 47):
        a, b = (torch.randint(-4, 5, (n, n), generator=rng).float() for _ in range(2))
        assert torch.equal(strassen(a, b, 3 + n % 5), a @ b)


def test_history_by_python(rng):
    """Python rounds a float64 sum of two float32 to float32 as float32 addition does."""
    steady_matmul = reference("steady_matmul")

    def short(value):
        return struct.unpack("f", struct.pack("f", value))[0]

    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        a, b = (torch.randn(shape, generator=rng).to(dtype) for shape in ((4, 90), (90, 3)))
        for i in range(4):
            for j in range(3):
                total = 0.0
                for x, y in zip(a[i].tolist(), b[:, j].tolist(), strict=True):
                    total = short(total + short(x * y))
                assert steady_matmul(a, b)[i, j] == torch.tensor(total).to(dtype)
