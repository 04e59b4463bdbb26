"""`int_conv2d`: the reference against gemmlowp's definition, and against PyTorch's own quantized convolution."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import references

reference = partial(references.reference, "ch01_formats")
SEEDS = st.integers(0, 2**32 - 1)
ENGINES = [name for name in torch.backends.quantized.supported_engines if name != "none"]
FLOAT_ROUNDING = 1e-4
"""In steps of the result, far more than a ratio in float32 is off by."""

some = settings(max_examples=60, derandomize=True, database=None)


def unit(x, w):
    assert x.dtype is torch.uint8 and w.dtype is torch.int8
    return F.conv2d(x.int(), w.int())


def whole(rng, low, high, *shape):
    return torch.randint(low, high + 1, shape, generator=rng)


def towards_zero(dividend, divisor):
    """Divide as C does."""
    size = abs(dividend) // divisor
    return size if dividend >= 0 else -size


def requantized(accumulator, multiplier, shift):
    """Multiply and shift as gemmlowp's fixedpoint.h defines it, a number at a time.

    `SaturatingRoundingDoublingHighMul`, then `RoundingDivideByPOT`.
    """
    product = accumulator * multiplier
    nudge = 2**30 if product >= 0 else 1 - 2**30
    high = towards_zero(product + nudge, 2**31)
    mask = 2**shift - 1
    threshold = (mask >> 1) + (high < 0)
    return (high >> shift) + ((high & mask) > threshold)


@some
@given(SEEDS, st.integers(0, 30))
def test_rounding_is_gemmlowps(seed, shift):
    rng = torch.Generator().manual_seed(seed)
    ends = torch.tensor([-(2**31), 2**31 - 1, -1, 0, 1])
    ties = (2 * whole(rng, -200, 200, 100) + 1) * 2**shift  # with 2**30: H is half a unit
    sums = torch.cat([ends, ties[ties.abs() < 2**31], whole(rng, -(2**31), 2**31 - 1, 40)])
    sums = torch.cat([sums, whole(rng, -300, 300, 60) << shift >> 1])
    sums = sums.clamp(-(2**31), 2**31 - 1)
    multiplier = whole(rng, 2**30, 2**31 - 1, len(sums))
    multiplier[: len(sums) // 2] = 2**30
    shifts = torch.full_like(sums, shift)
    w = whole(rng, -128, 127, len(sums), 1, 1, 1).to(torch.int8)
    x = torch.full((1, 1, 1, 1), 77, dtype=torch.uint8)
    got = reference("int_conv2d")(
        x, 77, w, sums.int(), 0, multiplier.int(), shifts.int(), 128, unit
    )
    asked = zip(sums.tolist(), multiplier.tolist(), shifts.tolist(), strict=True)
    expected = [min(max(requantized(*each) + 128, 0), 255) for each in asked]
    assert got.flatten().tolist() == expected


def fixed_point(ratio):
    """Return multipliers and shifts of float64 ratios below 1."""
    fraction, exponent = torch.frexp(ratio)
    multiplier = torch.round(fraction * 2**31).long()
    full = multiplier == 2**31
    return torch.where(full, 2**30, multiplier).int(), (full.int() - exponent).int()


@pytest.mark.filterwarnings("ignore")  # quantized tensors are deprecated, and still the oracle
@pytest.mark.parametrize("engine", ENGINES)
def test_codes_are_torchs_but_near_ties(engine):
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = engine
    try:
        clear, codes = torchs_and_ours()
    finally:
        torch.backends.quantized.engine = before
    assert clear > 0.97 * codes, "hardly any code was compared"


def torchs_and_ours():
    """Compare layers; return how many codes are not near a tie, and how many there are."""
    rng = torch.Generator().manual_seed(1)
    compared = codes = 0
    for padding in (0, 1, 2) * 5:
        # 7 bits: without VNNI, engines add two products in int16, and two larger ones do not fit
        x = whole(rng, 0, 127, 2, 5, 7, 6).to(torch.uint8)
        w = whole(rng, -128, 127, 8, 5, 3, 3).to(torch.int8)
        bias = whole(rng, -20_000, 20_000, 8).int()
        x_zero, out_zero = whole(rng, 0, 127, 1).item(), whole(rng, 0, 255, 1).item()
        scale = (torch.rand(3, generator=rng) + 0.5).tolist()
        x_scale, y_scale = 0.02 * scale[0], 2.0 * scale[1]
        w_scale = 0.01 * (torch.rand(8, generator=rng).double() + 0.2)

        images = torch._make_per_tensor_quantized_tensor(x, x_scale, x_zero)
        weights = torch._make_per_channel_quantized_tensor(
            w, w_scale, torch.zeros(8, dtype=torch.long), 0
        )
        packed = torch.ops.quantized.conv2d_prepack(
            weights, (bias * x_scale * w_scale).float(), [1, 1], [padding] * 2, [1, 1], 1
        )
        torchs = torch.ops.quantized.conv2d(images, packed, y_scale, out_zero).int_repr()

        ratio = x_scale * w_scale / y_scale
        multiplier, shift = fixed_point(ratio)
        ours = reference("int_conv2d")(
            x, x_zero, w, bias, padding, multiplier, shift, out_zero, unit
        )
        real = F.pad(x.double() - x_zero, [padding] * 4)
        steps = (F.conv2d(real, w.double()) + bias[:, None, None]) * ratio[:, None, None]
        from_tie = (steps - steps.floor() - 0.5).abs()
        # the first rounding moves a sum by half a unit of H; torch has none
        clear = from_tie > 0.5 / 2.0 ** shift[:, None, None] + FLOAT_ROUNDING
        assert torch.equal(ours[clear], torchs[clear])
        compared, codes = compared + int(clear.sum()), codes + clear.numel()
    return compared, codes
