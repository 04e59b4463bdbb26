"""Checks of `alias_graph`: pairs and counts, over views of one, two and three storages."""

from itertools import combinations

import pytest
import torch

from grader import Mismatch, assert_equal, assert_holds, draw_int, draw_one, gate
from grader.ch02_strides.odd_layouts import codes
from grader.ch02_strides.view_inputs import reached, values


def expected(tensors):
    """Return the graph, from the storages' own identity."""
    return {
        (i, j): len(reached(tensors[i]) & reached(tensors[j]))
        for i, j in combinations(range(len(tensors)), 2)
        if tensors[i].untyped_storage().nbytes()
        and tensors[i].untyped_storage()._cdata == tensors[j].untyped_storage()._cdata
    }


def compare(aliases, *tensors, again=()):
    """Compare the graphs of a list: the tensors, and those at the positions `again` once more."""
    got = aliases.ask(list(tensors), again=list(again)).value
    tensors = [*tensors, *(tensors[number] for number in again)]
    right = expected(tensors)
    assert_holds(isinstance(got, dict), "Not a dict came back.", ("got", type(got).__name__))
    try:
        assert_equal(got, right)
    except Mismatch:
        pair = min(p for p in {**got, **right} if got.get(p) != right.get(p))
        raise Mismatch(
            f"The pair {pair} is not right.",
            (
                ("call", f"alias_graph([…]) of {len(tensors)} tensors"),
                *codes({f"tensor {k}": tensors[k] for k in pair if k in range(len(tensors))}),
                ("expected", f"{right[pair]} bytes" if pair in right else "no such pair"),
                ("got", f"{got[pair]!r} bytes" if pair in got else "no such pair"),
            ),
        ) from None


@pytest.fixture
def x(rng):
    """float32 (6, 8)."""
    return values(rng, (6, 8))


@gate
def test_a_pair(aliases, x):
    """Returns a `dict`; strangers make no pair."""
    compare(aliases, x, x.clone())
    compare(aliases, x)
    keys = list(aliases.ask([x, x]).value)
    assert_equal(keys, [(0, 1)], "The keys are not pairs of positions.")


def test_offsets(aliases, x, rng):
    """Views that begin elsewhere share a storage too, and a tensor with itself; clones do not."""
    row = draw_int(rng, 1, 4)
    compare(aliases, x, x[row:], x[:row], x.clone(), x[row], x[5, 7], x.reshape(-1)[3:20])
    compare(aliases, x[row:], x.clone()[row:], x[row])
    compare(aliases, x[:row], x[row], x[:0], torch.zeros(0), again=(1, 0, 2, 3, 1))


def test_interleaved(aliases, x):
    """Rows and columns, even and odd: within each other's reach, and no byte in common."""
    compare(aliases, x[::2], x[1::2], x.T, x[:, 3], x[:, 4:], x[2])
    compare(aliases, x.view(-1)[::2], x.view(-1)[1::2], x.view(-1)[::3], x.view(-1)[1::6])


def test_any_views(aliases, x, rng):
    """Random views of two matrices of the same size, counted exactly."""
    other = values(rng, (6, 8))
    for _ in range(4):
        views = []
        for _ in range(7):
            whole = draw_one(rng, (x, other))
            first, left = draw_int(rng, 0, 3), draw_int(rng, 0, 4)
            view = whole[first :: draw_int(rng, 1, 3), left :: draw_int(rng, 1, 3)]
            views.append(view.T if draw_int(rng, 0, 1) else view)
        compare(aliases, *views)


def test_dtypes(aliases, x, rng):
    """Views of the same bytes under other dtypes: half an element, real and imaginary parts."""
    halves = x.view(torch.int16)
    compare(aliases, x, halves, halves[:, 1::2], x[:, ::2], x.view(torch.uint8)[3:, 5:7])
    z = torch.complex(values(rng, (3, 4)), values(rng, (3, 4)))
    compare(aliases, z, z.real, z.imag, z[1:, 2], z.real[:, ::2])
    flags = x.view(torch.bool)
    compare(aliases, flags[2], x[2:3], x.view(torch.float64)[:, 1], x[3, 1:].view(torch.int32))


def test_each_byte_once(aliases, x):
    """Expanded tensors and windows reach their bytes many times; each counts once."""
    row = x.view(-1)
    compare(aliases, x[:1].expand(6, 8), x, row.unfold(0, 5, 2), row[4:5].expand(9), row[4:12])
    compare(aliases, x[2, 3].expand(3, 4), x[2:3, 3:4].expand(5, 5))


def test_empty(aliases, x):
    """Tensors without elements, with and without a storage; and no tensors."""
    assert_equal(aliases.ask([]).value, {}, "No tensors make no pairs.")
    nothing, none = torch.zeros(0), torch.zeros(3, 0, dtype=torch.int64)
    compare(aliases, x, x[:0], x[3:3, 2:], x[1:])
    compare(aliases, nothing, none, x[:, :1], nothing, x[:0], torch.zeros(()))
