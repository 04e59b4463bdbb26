"""Checks of `read_element`: strides of every kind, offsets, both ends of a dimension."""

import itertools

import pytest
import torch

from grader import Mismatch, assert_equal, compared, gate
from grader.ch02_strides.odd_layouts import storage_as_bytes, whole


@pytest.fixture
def x(rng):
    """int32 (2, 3, 4), contiguous."""
    return whole(rng, 2, 3, 4)


class Elements:
    """Asks for elements, with strides and offset in the units that the exercise counts in."""

    def __init__(self, probed, counts):
        self.ask = probed.ask
        self._counts = counts

    def told(self, x):
        """Return what `read_element` is told about `x`, all but the index."""
        size, itemsize = tuple(x.shape), x.element_size()
        unit = {"elements": 1, "bytes": itemsize}
        stride = tuple(step * unit[self._counts["stride"]] for step in x.stride())
        offset = x.storage_offset() * unit[self._counts["offset"]]
        return storage_as_bytes(x), size, stride, offset, itemsize


@pytest.fixture
def elements(elements, parameters):
    """The probe, in the units of the exercise's variant."""
    return Elements(elements, parameters["counts"])


def every_index(x):
    return list(itertools.product(*map(range, x.shape)))


def compare(elements, x, indices):
    """Compare with what `x[index]` holds."""
    memory, size, stride, offset, itemsize = elements.told(x)
    got = elements.ask(memory, size, stride, offset, itemsize, indices).value
    for index, found in zip(indices, got, strict=True):
        expected = bytes(x[index].reshape(1).clone().view(torch.uint8).tolist())
        if found != expected:
            compared(_kept(got))
            raise Mismatch(
                "An element is not the one at its index.",
                (
                    ("call", written(size, stride, offset, itemsize, index)),
                    ("expected", expected.hex(" ")),
                    ("got", found.hex(" ") if isinstance(found, bytes) else repr(found)[:200]),
                ),
            )
    compared(_kept(got))


def written(size, stride, offset, itemsize, index):
    """Return a call as one would write it."""
    return f"read_element(memory, {size}, {stride}, {offset}, {itemsize}, {index})"


def _kept(got):
    return [found.hex() if isinstance(found, bytes) else repr(found)[:200] for found in got]


def assert_refused(elements, cases):
    """Fail unless each (x, index) raises; ask all, so that what slips through tells why."""
    missed = []
    for x, index in cases:
        told = elements.told(x)
        raised = elements.ask(*told, [index]).raised
        if raised is None or not raised.is_a("IndexError"):
            call = written(*told[1:], index)
            missed.append((call, "no exception" if raised is None else raised.type))
    compared(missed)
    for call, came in missed[:1]:
        rows = (("call", call), ("got", came))
        raise Mismatch("This index must raise an IndexError.", rows)


@gate
def test_bytes(elements, x):
    """Returns `bytes`, as many as an element has."""
    got = elements.ask(*elements.told(x), [(0, 0, 0)]).value
    assert_equal([type(item).__name__ for item in got], ["bytes"], "An element is `bytes`.")
    assert_equal([len(item) for item in got], [x.element_size()], "The length of the element.")


def test_contiguous(elements, x):
    """Every element of contiguous tensors with one to four dimensions."""
    for value in (x, x.reshape(24), x.reshape(4, 6), x.reshape(2, 3, 2, 2)):
        compare(elements, value, every_index(value))


def test_any_stride(elements, x):
    """Transposed, stepped and expanded tensors."""
    for value in (x.permute(2, 0, 1), x[:, ::2, ::3], x[:1, :, :1].expand(5, 3, 4), x[:, :, :1]):
        compare(elements, value, every_index(value))


def test_offset(elements, x):
    """Tensors that begin within their storage."""
    for value in (x[1:], x[:, 1:, 2:], x[1, 2], x.permute(2, 1, 0)[1::2, 1:]):
        compare(elements, value, every_index(value))


def test_any_itemsize(elements, rng):
    """Elements of one, two and eight bytes, with strides and offset."""
    for dtype in (torch.uint8, torch.int16, torch.int64, torch.complex64):
        value = whole(rng, 6, 5, dtype=dtype).t()[1::2, 2:]
        compare(elements, value, every_index(value))


def test_negative(elements, x):
    """Negative indices count from the end, down to the first element."""
    for value in (x, x.permute(2, 0, 1)[1:]):
        compare(elements, value, [(-1, -1, -1)])
        below = [
            tuple(i - n for i, n in zip(index, value.shape, strict=True))
            for index in every_index(value)
        ]
        mixed = [(i, j - value.shape[1], k) for i, j, k in every_index(value)]
        compare(elements, value, below + mixed)


def test_out_of_range(elements, x):
    """Indices just beyond either end, and far beyond, raise `IndexError`."""
    inner = x[:, :2, 1:3]
    beyond = (2, 0, 0), (0, 2, 0), (0, 0, 2), (-3, 0, 0), (0, -3, 0), (1, 1, -3), (0, 90, 0)
    assert_refused(elements, [*((inner, index) for index in beyond), (x[:0], (0, 0, 0))])
    compare(elements, inner, [(1, 1, 1), (-2, -2, -2)])


def test_how_many(elements, x):
    """Too many and too few indices raise `IndexError`; a 0-dim tensor's index is `()`."""
    more, less = [(x, (1, 2, 3, 0)), (x[0, 0], (0, 0)), (x[0, 0, 0], (0,))], [(x, (1, 2)), (x, ())]
    assert_refused(elements, more + less)
    compare(elements, x[1, 2, 3], [()])
    compare(elements, x[0, 1, 2].clone(), [()])
