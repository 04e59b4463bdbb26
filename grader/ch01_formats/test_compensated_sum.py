"""Checks of `compensated_sum`: totals that stick, and sums of which almost nothing is left."""

import math

import pytest
import torch

from grader import Mismatch, assert_close, assert_tensor, gate, points

ROUNDING = 2.0**-24
"""float32's unit roundoff: half a step, relative to the number."""


@pytest.fixture
def terms(rng):
    """200 terms in each of 16 columns, of both signs and of magnitudes 2**-10 to 2**10."""
    size = torch.exp2(20 * torch.rand(200, 16, generator=rng) - 10)
    return size * torch.randn(200, 16, generator=rng)


def compare(column_sums, x):
    """Compare all columns, each in units of its own tolerance; show the worst.

    The bound is Ogita, Rump and Oishi's for compensated sums (Accurate Sum and Dot Product, 2005,
    proposition 4.5), with twice their first term: one rounding for the result, one to spare.
    """
    got = column_sums.ask(x).value
    assert_tensor(got, dtype=torch.float32, shape=x.shape[1:])
    columns = x.t().double().tolist()
    exact = torch.tensor([math.fsum(column) for column in columns], dtype=torch.float64)
    spread = torch.tensor([math.fsum(map(abs, column)) for column in columns], dtype=torch.float64)
    allowed = 2 * ROUNDING * exact.abs() + (len(x) * ROUNDING) ** 2 * spread
    unit = allowed.clamp(min=2.0**-149)  # of no terms the sum is exactly zero
    try:
        assert_close(got / unit, exact / unit, rtol=0.0, atol=1.0, because="the statement's bound")
    except Mismatch:
        off = ((got - exact).abs() / unit).nan_to_num(torch.inf)
        where = int(off.argmax())
        dtype = str(x.dtype).removeprefix("torch.")
        rows = (
            ("call", f"compensated_sum(x), x {dtype} of shape {tuple(x.shape)}"),
            (f"x[:, {where}]", shown(x[:, where])),
            ("expected", f"{float(exact[where]):.9g}, within {float(allowed[where]):.3g}"),
            ("got", f"{float(got[where]):.9g}"),
        )
        count = int((off > 1).sum())
        raise Mismatch(f"{count} of {len(off)} sums are too far off. The worst:", rows) from None


def shown(column):
    """Return the terms of a column, of many the first ones."""
    terms = ", ".join(f"{term:.9g}" for term in column[:4].tolist())
    return f"{terms}, … ({len(column)} terms)" if len(column) > 4 else terms


@gate
def test_shape_and_dtype(column_sums, terms):
    """Returns a `float32` tensor with one number per column."""
    for rows, columns in ((200, 16), (5, 3)):
        got = column_sums.ask(terms[:rows, :columns]).value
        assert_tensor(got, dtype=torch.float32, shape=(columns,))


def test_does_not_stick(column_sums, rng):
    """A total of 2**24 still takes up ones, and one of -2**27 takes up minus threes."""
    ones, threes = torch.ones(300), torch.full((300,), -3.0)
    ones[0], threes[0] = 2.0**24, -(2.0**27)
    odd = torch.randint(1, 4, (300,), generator=rng).float()
    odd[0] = 2.0**25
    compare(column_sums, torch.stack([ones, threes, odd], dim=1))


def test_bfloat16(column_sums, rng):
    """`bfloat16` terms are added in `float32`: 1,000 ones make 1,000."""
    x = (0.5 + torch.rand(1000, 4, generator=rng)).to(torch.bfloat16)
    x[:, 0] = 1.0
    compare(column_sums, x)


def test_long_sums(column_sums, rng):
    """1,000 positive terms, to the last bit."""
    compare(column_sums, torch.rand(1000, 16, generator=rng))


@points(3)
def test_cancellation(column_sums, terms, rng):
    """Terms that cancel, in any order: what is left over is right."""
    order = torch.rand(400, 16, generator=rng).argsort(0)
    leftover = torch.randn(1, 16, generator=rng) * 2.0**-10
    compare(column_sums, torch.cat([torch.cat([terms, -terms]).gather(0, order), leftover]))


def test_large_after_small(column_sums, rng):
    """A term much larger than the total pushes nothing out."""
    small = 1 + torch.rand(2, 16, generator=rng)
    large = torch.exp2(torch.randint(25, 60, (1, 16), generator=rng).float())
    large = torch.where(torch.arange(16) % 2 == 0, large, -large)
    compare(column_sums, torch.cat([small[:1], large, small[1:], -large]))
    compare(column_sums, torch.cat([-small[:1], small[1:], large, -large]))


def test_any_layout(column_sums, terms):
    """Transposed, strided and expanded inputs; a single row, or none; no column."""
    nudged = terms.clone()
    nudged[0] = 2.0**34
    transposed, expanded = nudged.t().contiguous().t(), nudged[:, :1].expand(200, 3)
    for x in (transposed, nudged[::3, 1::4], expanded, nudged[5:6], terms[:0, :3], terms[:4, :0]):
        compare(column_sums, x)
