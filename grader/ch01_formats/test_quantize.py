"""Checks of `quantize`: the range, the zero, and every value, per tensor and per channel."""

import pytest
import torch

from grader import Mismatch, about, assert_close, assert_same_bits, assert_tensor, gate
from grader.ch01_formats.patterns import awkward

TIE = 0.01
"""Values this close to a tie, in steps, are left to the check of ties: `x / s` and `x * (1 / s)`
differ by 2**-15 of a step at most."""

EPS = torch.finfo(torch.float32).eps


def parameters(x):
    """Return scale and zero point of one range, in float32."""
    low, high = x.min().clamp(max=0), x.max().clamp(min=0)
    scale = ((high - low) / 255).clamp(min=EPS)
    return scale, (-128 - torch.round(low / scale)).to(torch.int32)


def settled(x):
    """Return `x` with what lies near a tie moved a bit towards zero, but never to zero.

    A zero among values that are all positive would hide who forgets it. Where nothing lies near a
    tie, the result is `x` itself, in its own layout.
    """
    while True:
        steps = x.double() / parameters(x)[0]
        near = (steps - steps.floor() - 0.5).abs() < TIE
        if not bool(near.any()):
            return x
        x = torch.where(near, x * 0.97, x)


def check_shapes(got, x, axis):
    if not isinstance(got, list | tuple) or len(got) != 3:
        if got is None:
            raise Mismatch("`quantize` returned None. Did you forget a `return`?")
        raise Mismatch("`quantize` did not return three things: q, scale and zero point.")
    shape = () if axis is None else (x.shape[axis],)
    q, scale, zero_point = got
    for name, part, dtype, size in (
        ("q", q, torch.int8, x.shape),
        ("scale", scale, torch.float32, shape),
        ("zero_point", zero_point, torch.int32, shape),
    ):
        with asked(x, axis, name):
            assert_tensor(part, dtype=dtype, shape=size)


def asked(x, axis, name):
    """Return the words for what is compared: the call, its range and which part of the answer."""
    low, high = float(x.min()), float(x.max())
    values = f"{x.tolist()}" if x.numel() <= 6 else f"values from {low:.9g} to {high:.9g}"
    call = f"quantize(x, {axis}), x of shape {tuple(x.shape)}: {values}"
    return about(("call", call), of=f"`{name}`: ")


def compare_parameters(quantized, x):
    got = quantized.ask(x, None).value
    check_shapes(got, x, None)
    scale, zero_point = parameters(x)
    because = "one float32 rounding more or less"
    with asked(x, None, "scale"):
        assert_close(got[1], scale, rtol=2.0**-22, atol=0.0, because=because)
    with asked(x, None, "zero_point"):
        assert_same_bits(got[2], zero_point)
    return got


def compare_values(quantized, x):
    got = quantized.ask(x, None).value
    check_shapes(got, x, None)
    with asked(x, None, "q"):
        assert_same_bits(got[0], by_torch(x), of=x)


def by_torch(x):
    scale, zero_point = parameters(x)
    read_back = torch.fake_quantize_per_tensor_affine(x, scale, zero_point, -128, 127)
    return (torch.round(read_back.double() / scale) + zero_point).to(torch.int8)


@pytest.fixture
def x(rng):
    """2,000 values, more of them positive."""
    return settled(1.0 + 2.5 * torch.randn(2000, generator=rng))


@gate
def test_shapes_and_dtypes(quantized, x):
    """Returns `int8` values like `x`, a `float32` scale and an `int32` zero point."""
    for value in (x, x[:12].reshape(3, 4)):
        check_shapes(quantized.ask(value, None).value, value, None)


def test_range(quantized, x, rng):
    """Scale and zero point spread the range from minimum to maximum over 255 steps."""
    for factor, shift in ((1.0, 0.0), (1e-3, 0.0), (1e4, -3e3), (-0.02, 0.01)):
        compare_parameters(quantized, settled(x[:500] * factor + shift))


def test_zero_is_exact(quantized, rng):
    """0.0 is in the range, and becomes the zero point: all positive, all negative, all zero."""
    positive = 3.0 + torch.rand(50, generator=rng)
    for x in (positive, -positive, torch.zeros(5), torch.full((), 2.5), torch.full((3,), -1e-7)):
        x = settled(x)
        got = compare_parameters(quantized, x)
        with asked(x, None, "q"):
            assert_same_bits(got[0], by_torch(x), of=x)
        if not bool((got[0][x == 0] == got[2]).all()):
            raise Mismatch("0.0 did not become the zero point.")


def test_values(quantized, x):
    """Every value is rounded to the nearest step: the same `int8` as PyTorch's, in any layout."""
    compare_values(quantized, x)
    for value in awkward(x):
        if value.numel():
            compare_values(quantized, settled(value))
    transposed = settled(x[:600]).reshape(20, 30).t()
    strided = torch.stack([settled(x[:300]), x[300:600]], dim=1)[:, 0]
    for value in (transposed, strided):
        compare_values(quantized, value)


def test_ties_and_ends(quantized):
    """Ties go to even; what would be 128 is clamped to 127."""
    for step, low, high in ((1.0, -128.0, 127.0), (2.0**-9, -100.0, 155.0), (0.5, -101.5, 153.5)):
        inside = torch.arange(int(low) + 1, int(high)) + 0.5
        compare_values(quantized, torch.cat([torch.tensor([low, high, 0.0]), inside]) * step)


def test_per_channel(quantized, rng):
    """Per channel, each index along the axis has a range of its own."""
    for shape, axis in (((5, 40), 0), ((40, 5), 1), ((6, 3, 10), 1), ((4, 6, 6), 2), ((6,), 0)):
        channels = shape[axis]
        rest = torch.Size(shape).numel() // channels
        width = torch.exp2(torch.arange(channels) - 3.0)
        rows = [
            settled(w * (torch.randn(rest, generator=rng) + 0.5 * (i % 3 - 1)))
            for i, w in enumerate(width)
        ]
        order = [n for d, n in enumerate(shape) if d != axis]
        x = torch.stack(rows).reshape(channels, *order).movedim(0, axis)
        got = quantized.ask(x, axis).value
        check_shapes(got, x, axis)
        pairs = [parameters(row) for row in rows]
        because = "one float32 rounding more or less"
        scale = torch.stack([pair[0] for pair in pairs])
        with asked(x, axis, "scale"):
            assert_close(got[1], scale, rtol=2.0**-22, atol=0.0, because=because)
        with asked(x, axis, "zero_point"):
            assert_same_bits(got[2], torch.stack([pair[1] for pair in pairs]))
        q = torch.stack([by_torch(row) for row in rows]).reshape(channels, *order).movedim(0, axis)
        with asked(x, axis, "q"):
            assert_same_bits(got[0], q, of=x)
