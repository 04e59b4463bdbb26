"""Checks of `view_of`: each operation on every odd layout, against PyTorch's own view."""

import pytest
import torch

from grader import assert_tensor, draw_int, gate, odd_tensors
from grader.ch02_strides.odd_layouts import assert_same_view


@pytest.fixture
def tensors(rng):
    """Int32 tensors of three dimensions by name of their layout."""
    return odd_tensors(rng)


def compare(viewed, name, x, op, *arguments):
    """Compare one operation's views of `x`, for each tuple of arguments."""
    got = viewed.ask(x, [(op, args) for args in arguments]).value
    for args, view in zip(arguments, got, strict=True):
        call = f"x.{op}({', '.join(map(str, args))}) with x of size {tuple(x.shape)}"
        assert_same_view(view, getattr(x, op)(*args), f"{call}, {name}")


@gate
def test_tensor(viewed, tensors):
    """Returns a tensor of the right shape and dtype."""
    x = tensors["contiguous"]
    calls = [("transpose", (0, 2)), ("select", (1, 3)), ("expand", (2, 4, 5, 6))]
    for (op, args), got in zip(calls, viewed.ask(x, calls).value, strict=True):
        assert_tensor(got, dtype=x.dtype, shape=getattr(x, op)(*args).shape)


def test_transpose(viewed, tensors):
    """`transpose`, with negative dimensions too."""
    for name, x in tensors.items():
        compare(viewed, name, x, "transpose", (0, 1), (0, 2), (2, 1), (-1, 0), (1, 1))


def test_permute(viewed, tensors):
    """`permute`, cycles and negative dimensions included."""
    for name, x in tensors.items():
        compare(viewed, name, x, "permute", (2, 0, 1), (1, 2, 0), (-1, 0, -2), (0, 2, 1))


def test_select(viewed, tensors):
    """`select`: one index along a dimension, from either end."""
    for name, x in tensors.items():
        arguments = [
            (dim, index)
            for dim, n in zip((0, 1, 2, -1, -3), (*x.shape, x.shape[-1], x.shape[0]), strict=True)
            for index in ((0, n - 1, n // 2, -1, -n) if n else ())
        ]
        compare(viewed, name, x, "select", *arguments)
    compare(viewed, "one dimension", torch.arange(9, dtype=torch.int16)[3:], "select", (0, 4))


def test_narrow(viewed, tensors):
    """`narrow`: a part of a dimension, the whole of it, and none of it."""
    for name, x in tensors.items():
        arguments = [
            (dim, start, length)
            for dim, n in zip((0, 1, -1), x.shape, strict=True)
            for start, length in ((0, n), (n // 2, n - n // 2), (n // 3, n // 2), (n, 0))
        ]
        compare(viewed, name, x, "narrow", *arguments)


def test_expand(viewed, tensors, rng):
    """`expand`: sizes of 1, new leading dimensions, and -1 for a size that stays."""
    k = draw_int(rng, 2, 5)
    for name, x in tensors.items():
        a, b, c = x.shape
        compare(viewed, name, x, "expand", (k, a, b, c), (k, 1, -1, b, -1))
        compare(viewed, name, x[:, :1], "expand", (a, k, c), (2, -1, k, -1), (-1, -1, c))
        compare(viewed, name, x[:1], "expand", (0, b, c))
    compare(viewed, "0-dim", torch.tensor(k, dtype=torch.int32), "expand", (2, 3))


def test_diagonal(viewed, tensors):
    """`diagonal` of any two dimensions, above, on and below the main one."""
    for name, x in tensors.items():
        for shifts in ((0, 1, 2, 9), (-1, -2, -9)):
            dims = ((0, 1), (1, 0), (0, 2), (2, 1), (-1, -3))
            compare(viewed, name, x, "diagonal", *((k, *pair) for pair in dims for k in shifts))
    compare(viewed, "a matrix", tensors["permuted"][1], "diagonal", (1, 0, 1))


def test_unfold(viewed, tensors):
    """`unfold`: windows that overlap, touch, or leave gaps; of one element, and of all."""
    for name, x in tensors.items():
        arguments = [
            (dim, window, step)
            for dim in (0, 1, 2, -1, -2)
            for window, step in ((1, 1), (2, 1), (2, 2), (2, 3), (1, 2), (x.shape[dim], 5), (3, 2))
            if window <= x.shape[dim]
        ]
        compare(viewed, name, x, "unfold", *arguments)
    compare(viewed, "one dimension", torch.arange(12, dtype=torch.int16)[2:], "unfold", (0, 4, 3))
