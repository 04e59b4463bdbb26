"""Checks of `windows`: elements for every step, layouts of all kinds, and what was copied."""

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_holds,
    assert_raises,
    assert_same_bits,
    assert_tensor,
    claimed,
    draw_int,
    facts,
    gate,
    points,
)
from grader.ch02_strides.odd_layouts import code
from grader.ch02_strides.view_inputs import layouts

ONE, NONE = (1, 1), (0, 0)
SPARE = 64
"""Bytes that may be allocated beside the padded image, by programs that hold numbers as tensors."""


@pytest.fixture
def x(rng):
    """float32 (2, 3, 7, 9), no number twice."""
    return torch.randperm(2 * 3 * 7 * 9, generator=rng).float().reshape(2, 3, 7, 9)


def expected(x, kernel, stride=ONE, dilation=ONE, padding=NONE):
    """Return the windows, written out."""
    (above, left), (h, w) = padding, x.shape[2:]
    whole = torch.zeros(*x.shape[:2], h + 2 * above, w + 2 * left, dtype=x.dtype)
    whole[:, :, above : above + h, left : left + w] = x
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    seen = whole.unfold(2, spans[0], stride[0]).unfold(3, spans[1], stride[1])
    return seen[..., :: dilation[0], :: dilation[1]]


def compare(windowed, x, kernel, stride=ONE, dilation=ONE, padding=NONE):
    got = windowed.ask(x, kernel, stride, dilation, padding).value["result"]
    want = expected(x, kernel, stride, dilation, padding)
    with asked(x, kernel, stride, dilation, padding):
        assert_tensor(got, dtype=x.dtype, shape=want.shape)
        try:
            assert_same_bits(got, want)
        except Mismatch as error:
            where = (got != want).nonzero()[0].tolist()
            raise Mismatch(error.what, (("at", str(where)), *error.rows)) from None


def asked(x, kernel, stride=ONE, dilation=ONE, padding=NONE):
    """Return the rows that show a call."""
    call = f"windows(x, {kernel}, {stride}, {dilation}, {padding})"
    return about(("call", call), ("x", code(x)))


@gate
def test_shape(windowed, x):
    """As many windows as fit, in a tensor of six dimensions."""
    for kernel in ((3, 2), (7, 9), ONE):
        got = windowed.ask(x, kernel, ONE, ONE, NONE).value["result"]
        with asked(x, kernel):
            assert_tensor(got, dtype=x.dtype, shape=expected(x, kernel).shape)


def test_side_by_side(windowed, x, rng):
    """Windows at every place of a row-major image."""
    compare(windowed, x, (3, 3))
    compare(windowed, x, (1, 4))
    compare(windowed, x.to(torch.int64), (draw_int(rng, 1, 7), draw_int(rng, 2, 9)))


def test_stride(windowed, x):
    """Windows further apart, also where some rows or columns are left over."""
    for kernel, stride in (((2, 3), (2, 3)), ((3, 2), (3, 1)), ((2, 2), (9, 4)), ((3, 3), (2, 2))):
        compare(windowed, x, kernel, stride)


def test_dilation(windowed, x, rng):
    """Places further apart, with and without a stride."""
    compare(windowed, x, (3, 3), ONE, (2, 3))
    compare(windowed, x, (3, 4), (2, 1), (3, 2))
    compare(windowed, x, (1, 2), (1, 2), (5, 8))
    for _ in range(4):
        stride, dilation = ((draw_int(rng, 1, 3), draw_int(rng, 1, 3)) for _ in range(2))
        compare(windowed, x, (draw_int(rng, 1, 3), draw_int(rng, 1, 3)), stride, dilation)


def test_any_layout(windowed, x, rng):
    """Permuted, expanded and cut-out images, and an empty batch."""
    compare(windowed, x[:0].to(torch.int16), (2, 3))
    for _, tensor in [*layouts(x, rng), ("flipped", x.transpose(2, 3))]:
        compare(windowed, tensor, (2, 3), (2, 1), (1, 2))


@points(3)
def test_no_copy(windowed, x, rng):
    """Without padding the windows lie in the storage of `x`."""
    for _, tensor in layouts(x, rng):
        got = windowed.ask(tensor, (3, 2), (1, 2), (2, 1), NONE).value["result"]
        with asked(tensor, (3, 2), (1, 2), (2, 1)):
            assert_holds(facts(got).aliases is not None, "The image was copied.")


def test_padding(windowed, x, rng):
    """Zeros all around, or on two sides only."""
    for padding in ((1, 2), (2, 0), (0, 1)):
        compare(windowed, x, (3, 2), (2, 1), ONE, padding)
    compare(windowed, x[:1, :1, :2, :1].to(torch.int32), (4, 5), ONE, ONE, (1, 2))
    for _, tensor in layouts(x, rng):
        compare(windowed, tensor, (2, 2), (2, 3), (2, 1), (1, 1))


def test_does_not_fit(windowed, x):
    """A `ValueError` where not one window fits."""
    too_large = (
        ((8, 1), ONE, ONE, NONE),
        ((1, 10), ONE, ONE, NONE),
        ((2, 3), ONE, (1, 5), (0, 0)),
        ((4, 2), (2, 2), (3, 1), (1, 0)),
    )
    for kernel, stride, dilation, padding in too_large:
        what = "Not one window fits into 7 × 9: that must raise a ValueError."
        evidence = windowed.ask(x, kernel, stride, dilation, padding)
        with asked(x, kernel, stride, dilation, padding):
            assert_raises(evidence, "ValueError", what)
    compare(windowed, x, (4, 2), (2, 2), (2, 8))


@claimed
def test_bytes(windowed, x, rng):
    """No byte is allocated without padding, and with padding those of one padded image."""
    for _, tensor in layouts(x, rng):
        for padding in (NONE, (2, 1)):
            h, w = (size + 2 * pad for size, pad in zip(x.shape[2:], padding, strict=True))
            need = x.shape[0] * x.shape[1] * h * w * x.itemsize if any(padding) else 0
            compare(windowed, tensor, (3, 3), (2, 1), (1, 2), padding)
            evidence = windowed.ask(tensor, (3, 3), (2, 1), (1, 2), padding).value
            got = evidence["bytes"] if evidence["bytes"] > need + SPARE else need
            with asked(tensor, (3, 3), (2, 1), (1, 2), padding):
                assert_equal(got, need, "Other numbers of bytes were allocated at once.")
