"""Checks of `quantized_add`: all 65,536 pairs of codes, under ever more different parameters."""

import pytest
import torch

from grader import Mismatch, assert_same_bits, assert_tensor, gate

TIE = 0.01
"""Sums this close to a tie, in steps, are left out: float32 may take them either way."""

CODES = torch.arange(-128, 128).to(torch.int8)
QX, QY = CODES.repeat_interleave(256), CODES.repeat(256)


def steps(q, pair, scale):
    return (q.double() - pair[1]) * (pair[0] / scale)


def compare(quantized_sum, pair_x, pair_y, out, qx=QX, qy=QY, ends=False):
    """Compare all sums that are no tie. Those beyond the range are left out unless `ends`."""
    exact = steps(qx, pair_x, out[0]) + steps(qy, pair_y, out[0])
    near = (exact - exact.floor() - 0.5).abs() < TIE
    if qx is QX:
        written = torch.round(exact) + out[1]
        left = ~near & (((written >= -128) & (written <= 127)) | ends)
        qx, qy, exact = qx[left], qy[left], exact[left]
    expected = (torch.round(exact) + out[1]).clamp(-128, 127).to(torch.int8)
    got = quantized_sum.ask(qx, list(pair_x), qy, list(pair_y), *out).value
    assert_tensor(got, dtype=torch.int8, shape=expected.shape)
    try:
        assert_same_bits(got, expected)
    except Mismatch:
        raise explained(got, expected, exact, (qx, pair_x), (qy, pair_y), out) from None


def explained(got, expected, exact, x, y, out):
    """Return the mismatch with the simplest failing pair of codes, and what the codes stand for."""
    wrong = (got != expected).reshape(-1).nonzero().reshape(-1)
    size = sum(q.reshape(-1)[wrong].int().abs() for q, _ in (x, y))
    where = wrong[size.argmin()]
    rows = []
    for name, (q, (scale, zero)) in (("x", x), ("y", y)):
        code = int(q.reshape(-1)[where])
        number = scale * (code - zero)
        rows.append((name, f"code {code}, scale {scale:.4g}, zero point {zero}: {number:.4g}"))
    scale, zero = out
    number = float(exact.reshape(-1)[where]) * scale
    rows.append(("x + y", f"{number:.4g}, to be stored with scale {scale:.4g}, zero point {zero}"))
    rows.append(("expected", f"code {int(expected.reshape(-1)[where])}"))
    rows.append(("got", f"code {int(got.reshape(-1)[where])}"))
    return Mismatch(f"{len(wrong)} of {got.numel()} codes differ. The simplest:", tuple(rows))


@pytest.fixture
def scales(rng):
    """Three scales, each a factor of 1.2 to 2 apart from the next, in random order."""
    apart = torch.exp2(torch.tensor([0.0, 1.0, 2.0]) + 0.25 * torch.rand(3, generator=rng))
    return (0.02 * apart)[torch.randperm(3, generator=rng)].tolist()


@pytest.fixture
def zeros(rng):
    """Three zero points that differ: one below, one around and one above zero, in random order."""
    low = torch.randint(-100, -40, (), generator=rng)
    mid = torch.randint(-20, -4, (), generator=rng)
    high = torch.randint(40, 100, (), generator=rng)
    return torch.stack([low, mid, high])[torch.randperm(3, generator=rng)].tolist()


@gate
def test_shape_and_dtype(quantized_sum):
    """Returns an `int8` tensor of the inputs' shape."""
    for q in (CODES, CODES[:12].reshape(3, 4)):
        assert_kind(quantized_sum, q)


def assert_kind(quantized_sum, q):
    got = quantized_sum.ask(q, [0.1, 3], q, [0.2, -7], 0.3, 5).value
    assert_tensor(got, dtype=torch.int8, shape=q.shape)


def test_one_pair(quantized_sum):
    """One scale for all three and no zero points: codes add up, and stop at −128 and 127."""
    for scale in (1.0, 0.03125):
        compare(quantized_sum, (scale, 0), (scale, 0), (scale, 0), ends=True)


def test_scales(quantized_sum, scales):
    """Three different scales."""
    first, second, third = scales
    for a, b, c in ((first, second, third), (third, first, second), (second, third, first)):
        compare(quantized_sum, (a, 0), (b, 0), (c, 0))


def test_zero_points(quantized_sum, zeros):
    """Three different zero points."""
    first, second, third = zeros
    for a, b, c in ((first, second, third), (third, first, second), (second, third, first)):
        compare(quantized_sum, (0.25, a), (0.25, b), (0.25, c))


def test_everything(quantized_sum, scales, zeros):
    """Three different pairs, all pairs of codes, any layout."""
    pairs = list(zip(scales, zeros, strict=True))
    for x, y, out in (pairs, pairs[::-1], pairs[1:] + pairs[:1]):
        compare(quantized_sum, x, y, out)
    matrix = CODES[:12].reshape(3, 4)
    for q in (matrix.t(), CODES[3:90:7], CODES[:1].expand(2, 3), CODES[9], CODES[:0].reshape(0, 4)):
        assert_kind(quantized_sum, q)
    qx, qy = QX.reshape(256, 256).t()[::5, 3::7], QY.reshape(256, 256)[::5, 3::7]
    x, y, out = pairs
    exact = steps(qx, x, out[0]) + steps(qy, y, out[0])
    safe = ((exact - exact.floor() - 0.5).abs() >= TIE).all(dim=1)
    rows = int(safe.int().argmax())  # one row without a tie, if there is any
    if bool(safe.any()):
        compare(quantized_sum, x, y, out, qx[rows], qy[rows])


def test_cancellation(quantized_sum, scales, zeros):
    """Two numbers beyond the result's range whose sum lies within it, or far beyond it too."""
    x, y = (scales[0], zeros[0]), (scales[1], zeros[1])
    compare(quantized_sum, x, y, (min(scales) / 8, zeros[2]), ends=True)
    # sums of more steps than 16 and 32 bits count; powers of two, so that float32 has them exactly
    for steps_of_one in (2**7, 2**23):
        compare(quantized_sum, (0.5, 3), (0.5, -7), (0.5 / steps_of_one, 5), ends=True)
