"""Checks of `pad_collate`: cell by cell, for samples of every number of dimensions."""

from itertools import product
from math import isfinite

import pytest
import torch

from grader import (
    about,
    assert_equal,
    assert_holds,
    assert_raises,
    assert_same_bits,
    assert_tensor,
    compared,
    gate,
    points,
)
from grader.ch06_dataloader.probes.collating import code_of_zeros


@pytest.fixture
def whole(rng):
    """float32 (9, 8, 7), what samples are cut from; a quarter of it is exactly 0."""
    drawn = torch.randn(9, 8, 7, generator=rng)
    return drawn.masked_fill_(torch.rand(9, 8, 7, generator=rng) < 0.25, 0.0)


@pytest.fixture
def samples(whole):
    """Three sentences of 3, 5 and 2 features with 4 numbers each."""
    return [whole[:3, 0, :4], whole[2:7, 1, :4], whole[:2, 2, :4]]


@pytest.fixture
def options():
    return {}


def laid_out(samples, value=0, dims=1, multiple=1):
    """Return batch and mask, cell by cell."""
    shapes = [tuple(sample.shape[:dims]) for sample in samples]
    sizes = [max(shape[d] for shape in shapes) for d in range(dims)]
    while any(size % multiple for size in sizes):
        sizes = [size + (size % multiple > 0) for size in sizes]
    others = samples[0].shape[dims:]
    filling = torch.tensor(value).to(samples[0].dtype)
    batch = filling.expand(len(samples), *sizes, *others).clone()
    mask = torch.zeros(len(samples), *sizes).bool()
    for row, (sample, shape) in enumerate(zip(samples, shapes, strict=True)):
        for at in product(*map(range, shape)):
            batch[(row, *at)] = sample[at]
            mask[(row, *at)] = True
    return batch, mask


def call(samples, options):
    """Return a call with samples of these shapes and dtypes, and these options, as Python."""
    given = "".join(f", {name}={as_python(value)}" for name, value in options.items())
    return ("call", f"pad_collate([{', '.join(map(code_of_zeros, samples))}]{given})")


def as_python(value):
    odd = isinstance(value, float) and not isfinite(value)
    return f'float("{value}")' if odd else repr(value)


def compare(padded, samples, **options):
    """Compare batch and mask."""
    got = padded.ask(samples, options).value
    batch, mask = laid_out(samples, **options)
    with about(call(samples, options)):
        same_cells(got["batch"], batch, "batch")
        same_cells(got["mask"], mask, "mask")


def same_cells(got, expected, name):
    """Compare shape, dtype and every bit."""
    assert_holds(isinstance(got, torch.Tensor), f"The {name} is no tensor.")
    assert_equal(tuple(got.shape), tuple(expected.shape), f"The shape of the {name}.")
    assert_equal(str(got.dtype), str(expected.dtype), f"The dtype of the {name}.")
    with about(of=f"The {name}: "):
        assert_same_bits(got, expected)


@gate
def test_two_tensors(padded, samples):
    """Returns a pair of tensors, of the samples' dtype and `bool`."""
    got = padded.value
    assert_holds(
        got["pair"] in ("tuple", "list"),
        "What comes back is no pair.",
        ("got", f"a {got['pair']}"),
    )
    assert_tensor(got["batch"], dtype=torch.float32, shape=(3, 5, 4))
    assert_tensor(got["mask"], dtype=torch.bool)


def test_values(padded, samples, whole):
    """Sentences of numbers, of vectors and of matrices: each from the beginning, zeros behind it."""
    vectors = [whole[:n, 3, n] for n in (4, 2, 6)]
    matrices = [whole[1:n].mT for n in (3, 9, 2)]
    for some in (samples, samples[::-1], vectors, [whole[:n] for n in (2, 5)]):
        got = padded.ask(some, {}).value["batch"]
        expected, _ = laid_out(some)
        with about(call(some, {})):
            same_cells(got, expected, "batch")
    compare(padded, matrices)


@points(4)
def test_mask(padded, samples, whole):
    """The mask tells where there is a sample, also where a real entry equals the filling."""
    for some in (samples, [whole[:n, 3, n] * 0 for n in (4, 2, 6)], [whole[:n] for n in (2, 5)]):
        got = padded.ask(some, {}).value["mask"]
        _, expected = laid_out(some)
        with about(call(some, {}), ("samples", "with zeros among their numbers")):
            same_cells(got, expected, "mask")
    compare(padded, [whole[:n, 0, 0].gt(0) for n in (3, 5)], value=True)


def test_several_dims(padded, whole):
    """Two or three dimensions that differ, each with a largest size of its own."""
    images = [whole[:3, :6], whole[2:7, :2], whole[:4, 1:2]]
    compare(padded, images, dims=2)
    compare(padded, [image[:, :, 0] for image in images], dims=2, value=-1)
    compare(padded, [whole[:2, :3, :4], whole[:3, :1, :7], whole[:1, :5, :2]], dims=3)
    compare(padded, [image.permute(2, 1, 0) for image in [whole[:4, :2], whole[:4, :7]]], dims=2)
    compare(padded, [image[:, :1].expand(-1, 5, -1) for image in images], dims=2)


def test_any_filling(padded, samples):
    """Any filling, in any dtype."""
    for value, dtype in (
        (torch.nan, torch.float32),
        (-torch.inf, torch.float64),
        (0.1, torch.bfloat16),
        (-100, torch.int64),
        (2**53 + 1, torch.int64),
        (255, torch.uint8),
        (True, torch.bool),
        (-0.0, torch.float16),
    ):
        compare(padded, [(sample * 3).to(dtype) for sample in samples], value=value)
        compare(padded, [(sample * 3).to(dtype) for sample in samples])


def test_multiple(padded, samples, whole):
    """Sizes are rounded up to a multiple, and stay if they are one."""
    for multiple in (1, 2, 4, 5, 8, 64):
        compare(padded, samples, multiple=multiple, value=7)
        compare(padded, [samples[0], samples[0] + 1], multiple=multiple)
    images = [whole[:3, :6], whole[2:7, :2]]
    for multiple in (3, 4):
        compare(padded, images, dims=2, multiple=multiple)


def test_empty(padded, samples, whole):
    """Samples without elements, only such, a single sample, and features of size 0."""
    compare(padded, [samples[0], samples[0][:0], samples[2]])
    compare(padded, [samples[0][:0], samples[1][:0]], multiple=4)
    compare(padded, [whole[:0, 0, 0]])
    compare(padded, samples[:1])
    compare(padded, [sample[:, :0] for sample in samples])
    compare(padded, [whole[:0, :3], whole[:2, :0], whole[:1, :1]], dims=2, value=3)
    compare(padded, [whole[:0, :3], whole[:2, :0]], dims=2)


def test_copies(padded_over, samples):
    """Nothing written into batch or mask reaches a sample, also where nothing was padded."""
    for some in (samples, samples[:1], [samples[0].clone() for _ in range(2)]):
        got = padded_over.ask(some).value
        for mine, theirs in zip(got, some, strict=True):
            with about(call(some, {})):
                what = "A sample has changed after batch and mask were written over, or before."
                assert_holds(torch.equal(mine, theirs), what)


def test_refuses(padded, samples, whole):
    """Other dtypes, numbers of dimensions or feature sizes raise `ValueError`."""
    one, two = samples[:2]
    cases = (
        ([one, two[:, :3]], {}),
        ([one, two[:, :1]], {}),
        ([one[:, :1], two], {}),
        ([one, two[:, 0]], {}),
        ([one[:, 0], two], {}),
        ([one, one, whole[:3, :4, :4]], {}),
        ([one, one[None]], {}),
        ([whole[:2, :3, :4], whole[:2, :3, :5]], {"dims": 2}),
        ([whole[:2, :3, :4], whole[:2, :3, :1]], {"dims": 2}),
        ([one, two.double()], {}),
        ([one, two.to(torch.int64)], {}),
    )
    found = [padded.ask(some, options) for some, options in cases]
    # what each of them raised is evidence, also behind the first that fails
    compared([got.raised is not None for got in found])
    for (some, options), got in zip(cases, found, strict=True):
        what = "Samples that differ in more than the sizes that are padded."
        assert_raises(got, "ValueError", what, call(some, options))
