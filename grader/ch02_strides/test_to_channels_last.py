"""Checks of `to_channels_last`: elements, strides, and whether bytes were copied once or not."""

import pytest
import torch

from grader import about, assert_equal, assert_holds, assert_same_bits, claimed, facts, gate
from grader.ch02_strides.odd_layouts import code
from grader.ch02_strides.view_inputs import later, layouts, values

SPARE = 64
"""Bytes that may be allocated beside the copy, for a program that holds single numbers as tensors."""


@pytest.fixture
def image(rng):
    """float32 (n, c, h, w), four different sizes."""
    return values(rng, (2, 3, 4, 5))


def strides_of(shape):
    """Return the strides that the exercise asks for."""
    n, c, *spatial = shape
    ordered = torch.empty(n, *spatial, c).stride()
    return (ordered[0], ordered[-1], *ordered[1:-1])


def asked(x):
    """Return the rows that show a call."""
    return about(("call", "to_channels_last(x)"), ("x", code(x)))


def compare_elements(channels_last, x):
    with asked(x):
        assert_same_bits(channels_last.ask(x).value["result"], x)


def compare_strides(channels_last, x):
    got = channels_last.ask(x).value["result"]
    with asked(x):
        assert_equal(got.stride(), strides_of(x.shape), "The strides are other ones.")


def ordered(x):
    """Return the elements of `x` in channels-last order at an offset in a longer storage."""
    return later(torch.empty_strided(x.shape, strides_of(x.shape), dtype=x.dtype).copy_(x))


def out_of_order(image, rng):
    """Return layouts whose elements must be moved: other orders, and the right one with gaps."""
    wide = ordered(values(rng, (2, 7, 4, 11)))
    gaps = [("right order, gaps between pixels", wide[:, 2:5, :, :5])]
    gaps.append(("right order, gaps between rows", ordered(values(rng, (2, 3, 4, 9)))[..., 2:7]))
    moved = [(name, x) for name, x in layouts(image, rng) if not x.movedim(1, -1).is_contiguous()]
    return [*moved, *gaps]  # a permutation drawn at random may be the right one


@gate
def test_elements(channels_last, image, rng):
    """Shape, dtype and elements of images are those of `x`, whatever its layout."""
    for x in (image, image.to(torch.int16)):
        for _, tensor in layouts(x, rng):
            compare_elements(channels_last, tensor)


def test_images(channels_last, image, rng):
    """Images have the strides (h·w·c, 1, w·c, c)."""
    for _, x in out_of_order(image, rng):
        compare_strides(channels_last, x)


def test_sound_and_video(channels_last, rng):
    """With three, five and six dimensions the rule is the same."""
    for shape in ((2, 3, 4), (2, 3, 4, 2, 5), (2, 3, 2, 3, 2, 2)):
        for _, x in layouts(values(rng, shape, torch.float64), rng):
            compare_elements(channels_last, x)
            compare_strides(channels_last, x)


def test_sizes_of_one(channels_last, rng):
    """Where sizes are 1, the strides follow the formula as well."""
    for shape in ((1, 3, 4, 5), (2, 1, 4, 5), (2, 3, 1, 5), (2, 3, 4, 1), (1, 1, 1, 1), (1, 4, 1)):
        for _, x in layouts(values(rng, shape), rng):
            compare_strides(channels_last, x)


def in_order(image, rng):
    """Return tensors whose elements lie in the order that is asked for, strides right or odd."""
    gray = later(values(rng, (2, 1, 3, 4)))
    pixel = values(rng, (2, 3, 1, 1), torch.int64)
    return (ordered(image), gray, pixel, image[:, :1, :, :1][1:, :, :1])


def test_no_copy(channels_last, image, rng):
    """What already lies in that order comes back as a view, its strides put right."""
    for x in in_order(image, rng):
        got = channels_last.ask(x).value["result"]
        with asked(x):
            what = "It was copied, though its elements lie in that order already."
            assert_holds(facts(got).aliases is not None, what)
            what = "The storage offset is not that of `x`: the view begins in another cell."
            assert_equal(got.storage_offset(), x.storage_offset(), what)
        compare_strides(channels_last, x)


def test_dense(channels_last, image, rng):
    """A copy has a storage of its own that holds its elements and nothing else."""
    for _, x in out_of_order(image, rng):
        got = channels_last.ask(x).value["result"]
        with asked(x):
            assert_holds(facts(got).aliases is None, "The result lies in the storage of `x`.")
            room = got.untyped_storage().nbytes()
            what = "The storage of the result has more bytes, or fewer, than its elements."
            assert_equal(room, x.numel() * x.itemsize, what)
            assert_same_bits(got, x)


@claimed
def test_bytes(channels_last, image, rng):
    """One copy is made where one is needed, and none elsewhere."""
    for _, x in out_of_order(image, rng):
        compare_strides(channels_last, x)
        compare_bytes(channels_last, x, x.numel() * x.itemsize)
    for x in in_order(image, rng):
        compare_bytes(channels_last, x, 0)


def compare_bytes(channels_last, x, need):
    got = channels_last.ask(x).value["bytes"]
    got = got if got > need + SPARE else need
    with asked(x):
        assert_equal(got, need, "Other numbers of bytes were allocated at once.")
