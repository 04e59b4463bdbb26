"""Checks of `view_of`: each operation on every odd layout, against PyTorch's own view."""

import pytest
import torch

from grader import assert_tensor, draw_int, gate, odd_tensors
from grader.ch02_strides.odd_layouts import assert_same_view, from_the_start


@pytest.fixture
def tensors(rng):
    """Int32 tensors of three dimensions by name of their layout, all from cell 0 on."""
    return from_the_start(odd_tensors(rng))


def compare(viewed, x, op, *arguments):
    """Compare one operation's views of `x`, for each tuple of arguments."""
    got = viewed.ask(x, [(op, args) for args in arguments]).value
    for args, view in zip(arguments, got, strict=True):
        call = f"view_of({', '.join(['x', repr(op), *map(str, args)])})"
        assert_same_view(view, getattr(x, op)(*args), call, x)


@gate
def test_tensor(viewed, tensors):
    """Returns a tensor of the right shape and dtype."""
    x = tensors["contiguous"]
    calls = [("transpose", (0, 2)), ("select", (1, 3)), ("expand", (2, 4, 5, 6))]
    for (op, args), got in zip(calls, viewed.ask(x, calls).value, strict=True):
        assert_tensor(got, dtype=x.dtype, shape=getattr(x, op)(*args).shape)


def test_transpose(viewed, tensors):
    """`transpose`, with negative dimensions too."""
    for x in tensors.values():
        compare(viewed, x, "transpose", (0, 1), (0, 2), (2, 1), (-1, 0), (1, 1))


def test_permute(viewed, tensors):
    """`permute`, cycles and negative dimensions included."""
    for x in tensors.values():
        compare(viewed, x, "permute", (2, 0, 1), (1, 2, 0), (-1, 0, -2), (0, 2, 1))


def test_select(viewed, tensors):
    """`select`: one index along a dimension, from either end."""
    for x in tensors.values():
        arguments = [
            (dim, index)
            for dim, n in zip((0, 1, 2, -1, -3), (*x.shape, x.shape[-1], x.shape[0]), strict=True)
            for index in ((0, n - 1, n // 2, -1, -n) if n else ())
        ]
        compare(viewed, x, "select", *arguments)
    compare(viewed, torch.arange(9, dtype=torch.int16), "select", (0, 4))


def test_narrow(viewed, tensors):
    """`narrow`: a part of a dimension, the whole of it, and none of it."""
    for x in tensors.values():
        arguments = [
            (dim, start, length)
            for dim, n in zip((0, 1, -1), x.shape, strict=True)
            for start, length in ((0, n), (n // 2, n - n // 2), (n // 3, n // 2), (n, 0))
        ]
        compare(viewed, x, "narrow", *arguments)


def test_expand(viewed, tensors, rng):
    """`expand`: sizes of 1, new leading dimensions, and -1 for a size that stays."""
    k = draw_int(rng, 2, 5)
    for x in tensors.values():
        a, b, c = x.shape
        compare(viewed, x, "expand", (k, a, b, c), (k, 1, -1, b, -1))
        compare(viewed, x[:, :1], "expand", (a, k, c), (2, -1, k, -1), (-1, -1, c))
        compare(viewed, x[:1], "expand", (0, b, c))
    compare(viewed, torch.tensor(k, dtype=torch.int32), "expand", (2, 3))


def test_diagonal(viewed, tensors):
    """`diagonal` of any two dimensions, above, on and below the main one."""
    for x in tensors.values():
        for shifts in ((0, 1, 2, 9), (-1, -2, -9)):
            dims = ((0, 1), (1, 0), (0, 2), (2, 1), (-1, -3))
            compare(viewed, x, "diagonal", *((k, *pair) for pair in dims for k in shifts))
    compare(viewed, tensors["permuted"][0], "diagonal", (1, 0, 1))


def test_unfold(viewed, tensors):
    """`unfold`: windows that overlap, touch, or leave gaps; of one element, and of all."""
    for x in tensors.values():
        arguments = [
            (dim, window, step)
            for dim in (0, 1, 2, -1, -2)
            for window, step in ((1, 1), (2, 1), (2, 2), (2, 3), (1, 2), (x.shape[dim], 5), (3, 2))
            if window <= x.shape[dim]
        ]
        compare(viewed, x, "unfold", *arguments)
    compare(viewed, torch.arange(12, dtype=torch.int16), "unfold", (0, 4, 3))


def test_offset(viewed, rng):
    """All of them, of tensors that begin within their storage."""
    for x in odd_tensors(rng).values():
        compare(viewed, x, "transpose", (0, 2))
        compare(viewed, x, "permute", (1, 2, 0))
        compare(viewed, x, "select", (0, -1))
        compare(viewed, x, "narrow", (0, 1, len(x) - 1))
        compare(viewed, x, "expand", (2, *x.shape))
        compare(viewed, x, "diagonal", (-1, 0, 1), (1, 0, 1))
        compare(viewed, x, "unfold", (0, min(len(x), 2), 1))
    compare(viewed, torch.arange(9, dtype=torch.int16)[3:], "select", (0, 4))
