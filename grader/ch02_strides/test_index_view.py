"""Checks of `index_view`: each kind of item apart, all of them mixed, and what must be refused."""

import pytest
import torch

from grader import assert_raises, assert_tensor, draw_int, gate, odd_tensors
from grader.ch02_strides.odd_layouts import assert_same_view, code, from_the_start

ALL = slice(None)


@pytest.fixture
def tensors(rng):
    """Int32 tensors of three dimensions by name of their layout, all from cell 0 on."""
    return from_the_start(odd_tensors(rng))


def written(items):
    """Return the call with these items."""
    shown = ", ".join(_shown(item) for item in items)
    return f"index_view(x, ({shown}{',' if len(items) == 1 else ''}))"


def _shown(item):
    if item is ...:
        return "..."
    if not isinstance(item, slice):
        return str(item)
    ends = [item.start, item.stop] + ([] if item.step is None else [item.step])
    return f"slice({', '.join(map(str, ends))})"


def compare(indexed, x, *selections):
    """Compare with `x[items]`, for each of `selections`."""
    got = indexed.ask(x, list(selections)).value
    for items, view in zip(selections, got, strict=True):
        assert_same_view(view, x[items], written(items), x)


def assert_refused(indexed, x, *items):
    what = "These items must raise an IndexError."
    rows = (("call", written(items)), ("x", code(x)))
    assert_raises(indexed.ask(x, [items]), "IndexError", what, *rows)


@gate
def test_tensor(indexed, tensors):
    """Returns a tensor of the right shape and dtype."""
    x = tensors["contiguous"]
    selections = [(1,), (ALL, slice(1, 3)), (None, 0)]
    for items, got in zip(selections, indexed.ask(x, selections).value, strict=True):
        assert_tensor(got, dtype=x.dtype, shape=x[items].shape)


def test_numbers(indexed, tensors):
    """Numbers, from either end, in front and in full."""
    for x in tensors.values():
        a, b, c = x.shape
        compare(indexed, x, (1,), (-a, b - 1))
        if x.numel():
            compare(indexed, x, (a - 1, 0, c - 1), (-1, -b, -c))


def test_slices(indexed, tensors):
    """Slices with steps, with ends left out, negative, far outside, and with nothing in between."""
    selections = [
        (slice(1, 3),),
        (ALL, slice(1, None, 2), slice(None, -1)),
        (slice(-2, None), slice(None, 99, 3), slice(-99, 3, 2)),
        (ALL, slice(3, 1), slice(1, 2)),
        (slice(99, None), slice(-1, -3)),
        (ALL, ALL, slice(1, None, 99)),
    ]
    for x in tensors.values():
        compare(indexed, x, *selections)


def test_none(indexed, tensors):
    """`None` adds a dimension of size 1, wherever it stands."""
    both = (None, 1, None, slice(0, 2), ALL, None, None)
    for x in tensors.values():
        compare(indexed, x, (None,), (ALL, None, slice(1, None)), both)
    compare(indexed, torch.tensor(5, dtype=torch.int16), (None, None))


def test_dots(indexed, tensors):
    """`...` stands for what is missing: much, little or nothing; and behind the last item anyway."""
    selections = [
        (),
        (...,),
        (..., slice(1, None, 2)),
        (1, ..., slice(0, 3)),
        (ALL, -1, ..., slice(1, 9)),
        (slice(1, 2), slice(1, 3), slice(0, 2), ...),
        (..., None, slice(2), None),
    ]
    for x in tensors.values():
        compare(indexed, x, *selections)
    compare(indexed, torch.arange(3)[0], (...,))


def test_refused(indexed, tensors):
    """A number beyond either end, and too many numbers and slices, raise `IndexError`."""
    x = tensors["with an offset and gaps"]
    a, b, c = x.shape
    for items in (
        (a,), (-a - 1,), (0, b), (ALL, -b - 1), (0, 0, c), (..., -c - 1), (None, a),
        (0, 0, 0, 0), (0, 0, 0, ALL), (ALL, ALL, ALL, ALL), (..., 0, ALL, 0, 0), (None, 0, 0, 0, 0),
    ):  # fmt: skip
        assert_refused(indexed, x, *items)
    assert_refused(indexed, tensors["empty"], 0, 0, 0)
    assert_refused(indexed, torch.tensor(3), 0)
    compare(indexed, x, (a - 1, -b, ..., -1))


def test_offset(indexed, rng):
    """All of them, of tensors that begin within their storage."""
    selections = [(1,), (ALL, slice(1, 3)), (None, ALL), (..., slice(0, 2)), (), (1, ..., None)]
    for x in odd_tensors(rng).values():
        compare(indexed, x, *selections)


def test_mixed(indexed, rng):
    """126 random mixtures of all of that."""
    for x in odd_tensors(rng).values():
        compare(indexed, x, *(random_items(x.shape, rng) for _ in range(18)))


def random_items(size, rng):
    """Return items that fit a tensor of that size."""
    keep = draw_int(rng, 0, len(size))
    dots = draw_int(rng, 0, keep)
    front, back = size[:dots], size[len(size) - (keep - dots) :]
    items = [*(random_item(n, rng) for n in front), ..., *(random_item(n, rng) for n in back)]
    if draw_int(rng, 0, 1) and dots == keep:
        items.remove(...)
    for _ in range(draw_int(rng, 0, 2)):
        items.insert(draw_int(rng, 0, len(items)), None)
    return tuple(items)


def random_item(n, rng):
    if n and draw_int(rng, 0, 2) == 0:
        return draw_int(rng, -n, n - 1)
    ends = [draw_int(rng, -n - 2, n + 2) if draw_int(rng, 0, 2) else None for _ in range(2)]
    return slice(*ends, draw_int(rng, 1, 3) if draw_int(rng, 0, 1) else None)
