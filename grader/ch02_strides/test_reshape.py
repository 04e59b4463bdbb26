"""Checks of `reshape`: where it aliases, where it copies, and how many bytes that takes."""

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_raises,
    assert_tensor,
    claimed,
    compared,
    draw_int,
    draw_order,
    facts,
    gate,
    odd_tensors,
)
from grader.ch02_strides.odd_layouts import assert_same_view, code, whole


@pytest.fixture
def x(rng):
    """int32 (4, 6), contiguous."""
    return whole(rng, 4, 6)


@pytest.fixture
def views(x):
    """Tensors, each with a new size that a view can have."""
    wide = x.reshape(2, 2, 6)
    return [
        (x, (24,)), (x, (2, 3, 4)), (x, (4, 6)), (x.t(), (2, 3, 2, 2)), (x.t(), (6, 1, 4)),
        (x[1:], (9, 2)), (x[:, 1:4], (2, 2, 3)), (x[1:, ::2], (9,)), (x[:, 2], (2, 2)),
        (x[2:3, :4].expand(5, 4), (5, 2, 2)), (x[0, 0].expand(2, 3), (6,)), (wide.permute(0, 2, 1), (2, 3, 2, 2)),
        (x[:, 3:4], (4,)), (x[3, 5], (1, 1)), (x[1:2, 2:3], ()),
        (x.reshape(-1).as_strided((3, 1, 2), (4, 17, 2), 3), (6,)),
    ]  # fmt: skip


@pytest.fixture
def copies(x):
    """Tensors, each with a new size that no view can have."""
    wide = x.reshape(2, 2, 6)
    return [
        (x.t(), (24,)), (x.t(), (4, 6)), (x[:, 1:4], (12,)), (x[:, 1:4], (2, 6)), (x[1:].t(), (9, 2)),
        (x[:1].expand(3, 6), (18,)), (x[:, :1].expand(4, 6), (3, 8)), (wide.permute(0, 2, 1), (2, 12)),
        (wide.permute(2, 1, 0), (6, 4)[::-1]), (x[::2, 1:], (5, 2)),
    ]  # fmt: skip


def called(x, new_size):
    """Return rows that show the call."""
    return ("call", f"reshape(x, {tuple(new_size)})"), ("x", code(x))


@gate
def test_tensor(reshaped, x):
    """Returns a tensor of the new size and the same dtype."""
    cases = [(x, (24,)), (x, (3, 8)), (x, (2, 12))]
    for (_, size), got in zip(cases, reshaped.ask(cases).value, strict=True):
        with about(*called(x, size)):
            assert_tensor(got, dtype=x.dtype, shape=size)


def compare(reshaped, cases):
    """Compare with PyTorch: a view where it makes one, and a copy where it must."""
    for (x, size), got in zip(cases, reshaped.ask(cases).value, strict=True):
        try:
            expected = x.view(size)
        except RuntimeError:
            compare_copy(got, x, size)
        else:
            assert_same_view(got, expected, f"reshape(x, {tuple(size)})", x)


def compare_copy(got, x, size):
    expected = x.reshape(size)
    rows = called(x, size)
    with about(*rows):
        assert_tensor(got, dtype=x.dtype, shape=expected.shape)
    aliases, stride = facts(got).aliases is not None, got.stride()
    compared([got, aliases, stride])
    if not torch.equal(got, expected):
        raise Mismatch("Elements are not in row-major order of the input.", rows)
    if aliases:
        raise Mismatch("This cannot be a view, and yet the result lives in its input.", rows)
    if not got.is_contiguous():
        raise Mismatch("The copy is not contiguous.", (*rows, ("got", f"stride {stride}")))


def test_views(reshaped, views):
    """Where a view is possible the result is one: no copy, and the layout of PyTorch's view."""
    compare(reshaped, views)


def test_copies(reshaped, copies):
    """Where no view is possible the result is a contiguous copy, in row-major order."""
    compare(reshaped, copies)


def test_minus_one(reshaped, views, copies):
    """A size of -1, for views and for copies."""
    compare(
        reshaped,
        [
            (x, (*size[:place], -1, *size[place + 1 :]))
            for x, size in views + copies
            for place in range(len(size))
        ],
    )


def test_other_dtypes(reshaped, rng):
    """Any dtype; tensors without elements."""
    for dtype in (torch.bool, torch.bfloat16, torch.float64, torch.complex64):
        x = whole(rng, 3, 4, dtype=dtype)
        compare(reshaped, [(x.t(), (2, 6)), (x[1:], (2, 2, 2))])
        cases = [(x[:0], (5, 0)), (x[:, :0].t(), (0,)), (x[1:1], (-1, 4))]
        for (empty, size), got in zip(cases, reshaped.ask(cases).value, strict=True):
            with about(*called(empty, size)):
                assert_tensor(got, dtype=dtype, shape=empty.reshape(size).shape)


def test_does_not_fit(reshaped, x):
    """A new size that does not fit raises `RuntimeError`."""
    for value, size in (
        (x, (23,)),
        (x.t(), (5, -1)),
        (x, (-1, -1)),
        (x[:0], (0, -1)),
        (x.t(), (2, 6)),
    ):
        what = "This must raise a RuntimeError."
        asked = reshaped.ask([(value, size)])
        assert_raises(asked, "RuntimeError", what, *called(value, size))
    compare(reshaped, [(x.t(), (3, 8))])


@claimed
def test_bytes(reshaping_bytes, views, copies):
    """A view allocates nothing; a copy allocates its elements once."""
    for cases, share in ((views, 0), (copies, 1)):
        for (x, size), got in zip(cases, reshaping_bytes.ask(cases).value, strict=True):
            most = share * x.numel() * x.element_size()
            with about(*called(x, size)):
                assert_equal(got, most, "So many bytes are not to be allocated.")


def test_any_layout(reshaped, rng):
    """100 random sizes for odd layouts: alias or copy as PyTorch has it."""
    tensors = list(odd_tensors(rng).values())[:6]
    cases = []
    for number in range(100):
        x = tensors[number % len(tensors)]
        x = x.permute(draw_order(rng, 3)) if number % 2 else x
        cases.append((x, _cut(rng, x)))
    compare(reshaped, cases)


def _cut(rng, x):
    """Return a size for x: two neighbours merged, or one dimension split."""
    size = list(x.shape)
    place = draw_int(rng, 0, 1)
    if draw_int(rng, 0, 1):
        size[place : place + 2] = [size[place] * size[place + 1]]
    else:
        n = size[place]
        part = next((k for k in (2, 3, 5) if n % k == 0), 1)
        size[place : place + 1] = [n // part, part]
    return tuple(size)
