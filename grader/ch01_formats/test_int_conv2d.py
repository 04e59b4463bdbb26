"""Checks of `int_conv2d`: bit for bit what TensorFlow Lite's definition gives."""

from dataclasses import dataclass, replace

import pytest
import torch
import torch.nn.functional as F

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_same_bits,
    assert_tensor,
    claimed,
    compared,
    draw_int,
    gate,
    points,
)


@dataclass(frozen=True)
class Layer:
    """What `int_conv2d` is asked, but for the unit."""

    x: torch.Tensor
    x_zero: int
    w: torch.Tensor
    bias: torch.Tensor
    padding: int
    multiplier: torch.Tensor
    shift: torch.Tensor
    out_zero: int

    @property
    def arguments(self):
        return tuple(vars(self).values())

    def codes(self):
        """Return the right codes: differences first, so that a border of zeros is a border of 0.0."""
        real = F.pad(self.x.long() - self.x_zero, [self.padding] * 4)
        sums = F.conv2d(real, self.w.long()) + column(self.bias)
        high = torch.div(sums * column(self.multiplier) + 2**30, 2**31, rounding_mode="floor")
        unit = 2 ** column(self.shift)
        least, rest = torch.div(high, unit, rounding_mode="floor"), high.remainder(unit)
        up = (2 * rest > unit) | ((2 * rest == unit) & (high > 0))
        return (least + up + self.out_zero).clamp(0, 255).to(torch.uint8)

    def __str__(self):
        return (
            f"x {tuple(self.x.shape)} with zero point {self.x_zero}, w {tuple(self.w.shape)}, "
            f"padding {self.padding}, out_zero {self.out_zero}"
        )


def column(numbers):
    """Return a number per channel as int64 (o, 1, 1)."""
    return numbers.long()[:, None, None]


def whole(rng, low, high, *shape, dtype=torch.int32):
    """Draw whole numbers from low to high, both included."""
    return torch.randint(low, high + 1, shape, generator=rng).to(dtype)


def layer(rng, image=(2, 3, 6, 5), kernel=(4, 3, 3, 2), padding=0, x_zero=0, out_zero=0):
    """Draw a layer whose codes spread over most of the range."""
    out = kernel[0]
    return Layer(
        x=whole(rng, 0, 255, *image, dtype=torch.uint8),
        x_zero=x_zero,
        w=whole(rng, -128, 127, *kernel, dtype=torch.int8),
        bias=whole(rng, -20_000, 20_000, out),
        padding=padding,
        multiplier=whole(rng, 2**30, 2**31 - 1, out),
        shift=torch.tensor([8, 10, 9, 11])[torch.arange(out) % 4].int(),
        out_zero=out_zero,
    )


def single(rng, sums, multiplier, shift, out_zero):
    """Return a layer without image and zero point, whose accumulators are the bias."""
    sums, multiplier, shift = torch.broadcast_tensors(
        *(torch.as_tensor(each) for each in (sums, multiplier, shift))
    )
    return Layer(
        x=torch.zeros(1, 1, 1, 1, dtype=torch.uint8),
        x_zero=0,
        w=whole(rng, -128, 127, len(sums), 1, 1, 1, dtype=torch.int8),
        bias=sums.int(),
        padding=0,
        multiplier=multiplier.int(),
        shift=shift.int(),
        out_zero=out_zero,
    )


def place(asked, wrong):
    """Return the row that says where the first wrong code is."""
    return [("at", str(at)) for at in wrong.nonzero()[:1].tolist()]


def channel(asked, wrong):
    """Return the rows of the first wrong channel of a `single`: each channel is a case."""
    rows = []
    for at in wrong.flatten().nonzero()[:1].flatten().tolist():
        pair = f"{asked.multiplier[at].item()} and {asked.shift[at].item()}"
        rows += [("accumulator", str(asked.bias[at].item())), ("multiplier, shift", pair)]
    return rows


def compare(int_convolved, asked, first=place):
    """Compare bit for bit; say of which layer, and by `first` what is wrong first."""
    expected = asked.codes()
    got = int_convolved.ask(*asked.arguments).value["codes"]
    try:
        assert_same_bits(got, expected)
    except Mismatch as mismatch:
        rows = [("layer", str(asked))]
        if isinstance(got, torch.Tensor) and got.shape == expected.shape:
            rows += first(asked, got != expected)
        what = mismatch.what.replace("simplest", "first")
        raise Mismatch(what, (*rows, *mismatch.rows)) from None


@pytest.fixture
def zeros(rng):
    """Two zero points, far from both ends and from each other."""
    return draw_int(rng, 30, 100), draw_int(rng, 140, 220)


@gate
def test_shape_and_unit(int_convolved, rng, zeros):
    """Returns `uint8` codes of the right shape, made from what the unit returned."""
    for image, kernel, padding in (
        ((1, 1, 1, 1), (1, 1, 1, 1), 0),
        ((2, 3, 6, 5), (4, 3, 3, 2), 0),
        ((1, 2, 2, 4), (3, 2, 2, 5), 1),
    ):
        asked = layer(rng, image, kernel, padding, *zeros)
        evidence = int_convolved.ask(*asked.arguments).value
        assert_tensor(evidence["codes"], dtype=torch.uint8, shape=tuple(asked.codes().shape))
        if not evidence["calls"]:
            raise Mismatch("`convolve` was not called. The products are the unit's work.")
    asked = layer(rng, padding=1, x_zero=zeros[0], out_zero=zeros[1])
    got = int_convolved.ask(*asked.arguments, True).value["codes"]
    compared(got)
    if torch.equal(got, asked.codes()):
        raise Mismatch("`convolve` was called, but what it returned is not used.")


def test_no_zero_points(int_convolved, rng):
    """Zero points 0, no padding: products, bias, and each channel's multiplier and shift."""
    for image, kernel in (
        ((2, 3, 6, 5), (4, 3, 3, 2)),
        ((1, 4, 3, 5), (5, 4, 1, 1)),
        ((3, 2, 5, 4), (3, 2, 4, 2)),
    ):
        compare(int_convolved, layer(rng, image, kernel))


def test_zero_point(int_convolved, rng, zeros):
    """A zero point of the activations, no padding."""
    for zero in (1, *zeros, 255):
        compare(int_convolved, layer(rng, x_zero=zero, out_zero=128))


def test_padding(int_convolved, rng, zeros):
    """A border that stands for 0.0, whatever the zero point."""
    for zero in (0, *zeros):
        for padding in (1, 2):
            compare(int_convolved, layer(rng, padding=padding, x_zero=zero, out_zero=128))


@points(2)
def test_rounding(int_convolved, rng):
    """Rounds twice: ties up after the multiplication, and away from zero after the shift."""
    half, whole_range = 2**30, torch.arange(-9, 10)
    cases = [(whole_range, half, 0)]  # the first rounding alone
    for shift in (1, 2, 3, 7):
        ties = (2 * whole_range + 1) * 2 ** (shift - 1)
        for beside in (-1, 0, 1):
            cases.append((2 * (ties + beside), half, shift))  # the second alone
            cases.append((2 * (ties + beside) - 1, half, shift))  # one after the other
    for shift in (16, 20, 24):
        # H one below, at or above a tie of the second rounding, by a multiplication that rounds
        factor = whole(rng, 2**30, 2**31 - 1, 40)
        high = (2 * whole(rng, -60, 60, 40).long() + 1) * 2 ** (shift - 1)
        nearest = torch.div(high * 2**31, factor, rounding_mode="floor")
        sums = nearest + whole(rng, -1, 2, 40)
        fits = sums.abs() < 2**31 - 1
        cases.append((sums[fits], factor[fits], shift))
    for case in cases:
        compare(int_convolved, single(rng, *case, 128), channel)
    mixed = [
        torch.cat([torch.as_tensor(one[at]).expand(len(one[0])) for one in cases])
        for at in (0, 1, 2)
    ]
    order = torch.randperm(len(mixed[0]), generator=rng)
    compare(int_convolved, single(rng, *(each[order] for each in mixed), 128), channel)


def test_large_accumulators(int_convolved, rng):
    """Accumulators of up to 31 bits, exact to the last one."""
    most = torch.iinfo(torch.int32)
    ends = torch.tensor([most.max, most.min, most.max - 1, most.min + 1])
    for shift in (24, 27, 30):
        sums = torch.cat([ends, whole(rng, most.min, most.max - 1, 60)])
        factor = torch.cat([torch.tensor([2**31 - 1, 2**31 - 1, 2**30, 2**30]),
                            whole(rng, 2**30, 2**31 - 1, 60)])  # fmt: skip
        compare(int_convolved, single(rng, sums, factor, shift, 128), channel)


def test_range(int_convolved, rng):
    """Adds the result's zero point, then cuts off at 0 and 255."""
    around = torch.tensor(
        [-300, -257, -256, -255, -129, -128, -1, 0, 1, 127, 128, 255, 256, 257, 300]
    )
    for out_zero in (0, 1, 100, 255):
        sums = 4 * torch.cat([around, around - out_zero])
        compare(int_convolved, single(rng, sums, 2**30, 1, out_zero), channel)


def test_one_call(int_convolved, rng, zeros):
    """The unit is called exactly once."""
    for padding, x_zero in ((0, 0), (0, zeros[0]), (2, zeros[0])):
        asked = layer(rng, padding=padding, x_zero=x_zero, out_zero=zeros[1])
        compare(int_convolved, asked)
        calls = int_convolved.ask(*asked.arguments).value["calls"]
        with about(("layer", str(asked))):
            assert_equal(calls, 1, "`convolve` was not called exactly once.")


@claimed
def test_whole_numbers(int_convolved, rng, zeros):
    """No tensor on the way holds floats."""
    asked = layer(rng, padding=1, x_zero=zeros[0], out_zero=zeros[1])
    compare(int_convolved, asked)
    made = int_convolved.ask(*asked.arguments).value["floats"]
    if made:
        raise Mismatch("Floats were computed on the way.", (("first by", made[0]),))


@points(5)
def test_convolution(int_convolved, rng, zeros):
    """A whole layer: any sizes, layouts, padding, zero points, multipliers and shifts."""
    first, second = zeros
    base = layer(rng, (4, 3, 7, 8), (5, 3, 3, 3), 1, first, second)
    x, w = base.x, base.w
    layers = [
        base,
        replace(base, x=x.contiguous(memory_format=torch.channels_last)),
        replace(base, x=x[::2, :, 1::2, ::3], padding=2),
        replace(base, x=x.transpose(2, 3), w=w.transpose(2, 3)),
        replace(base, x=x[:1, :, :1].expand(2, 3, 7, 8), x_zero=second, out_zero=first),
        layer(rng, (1, 5, 4, 4), (4, 5, 4, 4), 0, second, first),
        layer(rng, (1, 1, 1, 1), (6, 1, 3, 3), 1, second, 0),
        layer(rng, (2, 2, 3, 9), (1, 2, 1, 5), 3, 255, 255),
    ]
    for asked in layers:
        compare(int_convolved, asked)
