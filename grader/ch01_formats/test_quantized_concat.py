"""Checks of `quantized_concat`: all codes of every part, under pairs that differ more and more."""

import pytest
import torch

from grader import Mismatch, assert_same_bits, assert_tensor, gate

TIE = 0.01
"""Numbers this close to a tie, in steps, are left out: float32 may take them either way."""

CODES = torch.arange(-128, 128).to(torch.int8)


def exact(q, pair, scale):
    """Return how many steps of `scale` the codes `q` stand for."""
    return (q.double() - pair[1]) * (pair[0] / scale)


def clear(pair, scale):
    """Return the codes that do not come near a tie."""
    steps = exact(CODES, pair, scale)
    return CODES[(steps - steps.floor() - 0.5).abs() >= TIE]


def within(pair, out):
    """Return those of them whose numbers the result's range has: the ends are a check of their own."""
    codes = clear(pair, out[0])
    written = torch.round(exact(codes, pair, out[0])) + out[1]
    return codes[(written >= -128) & (written <= 127)]


def compare(quantized_joined, tensors, pairs, dim, out):
    expected = [
        (torch.round(exact(q, pair, out[0])) + out[1]).clamp(-128, 127).to(torch.int8)
        for q, pair in zip(tensors, pairs, strict=True)
    ]
    expected = torch.cat(expected, dim)
    got = quantized_joined.ask(tensors, [list(pair) for pair in pairs], dim, *out).value
    assert_tensor(got, dtype=torch.int8, shape=expected.shape)
    try:
        assert_same_bits(got, expected)
    except Mismatch:
        raise explained(got, expected, tensors, pairs, dim, out) from None


def explained(got, expected, tensors, pairs, dim, out):
    """Return a mismatch that shows the failing code nearest to zero, and what it stands for."""
    codes = torch.cat(tensors, dim).reshape(-1)
    owner = torch.cat([torch.full(q.shape, i) for i, q in enumerate(tensors)], dim).reshape(-1)
    wrong = (got != expected).reshape(-1).nonzero().reshape(-1)
    where = int(wrong[codes[wrong].int().abs().argmin()])
    part, code = int(owner[where]), int(codes[where])
    scale, zero_point = pairs[part]
    number = scale * (code - zero_point)
    rows = (
        ("call", f"quantized_concat(parts, {dim}, {out[0]:.4g}, {out[1]}), {len(pairs)} parts"),
        (f"part {part}", f"code {code}, scale {scale:.4g}, zero point {zero_point}: {number:.4g}"),
        ("to be stored with", f"scale {out[0]:.4g}, zero point {out[1]}"),
        ("expected", f"code {int(expected.reshape(-1)[where])}"),
        ("got", f"code {int(got.reshape(-1)[where])}"),
    )
    return Mismatch(f"{len(wrong)} of {got.numel()} codes differ. The simplest:", rows)


@pytest.fixture
def scales(rng):
    """Four scales, none a simple multiple of another, in random order."""
    apart = torch.exp2(torch.arange(4) - 1.5 + 0.25 * torch.rand(4, generator=rng))
    return (0.02 * apart)[torch.randperm(4, generator=rng)].tolist()


@pytest.fixture
def zeros(rng):
    """Four zero points that differ, in random order."""
    spread = torch.tensor([-90, -30, 30, 90]) + torch.randint(-20, 20, (4,), generator=rng)
    return spread[torch.randperm(4, generator=rng)].tolist()


@gate
def test_shape_and_dtype(quantized_joined):
    """Returns an `int8` tensor, as large along `dim` as the parts together."""
    for shapes, dim in (
        (((2, 3), (4, 3)), 0),
        (((2, 3), (2, 1), (2, 5)), 1),
        (((2, 3, 4), (2, 3, 1)), 2),
    ):
        assert_kind(quantized_joined, shapes, dim)


def assert_kind(quantized_joined, shapes, dim):
    tensors = [CODES[: torch.Size(shape).numel()].reshape(shape) for shape in shapes]
    pairs = [[0.1 * (i + 1), i] for i in range(len(shapes))]
    got = quantized_joined.ask(tensors, pairs, dim, 0.3, 5).value
    assert_tensor(got, dtype=torch.int8, shape=torch.cat(tensors, dim).shape)


def test_same_pair(quantized_joined, scales, zeros):
    """A part that has the result's pair keeps its codes; one beside it with another pair does not."""
    pairs = list(zip(sorted(scales), zeros, strict=True))
    out = pairs[0]
    same, other = CODES.flip(0), within(pairs[1], out)
    compare(quantized_joined, [other, same], [pairs[1], out], 0, out)
    compare(quantized_joined, [same, other, same], [out, pairs[1], out], 0, out)


def test_scales(quantized_joined, scales):
    """Different scales, no zero points."""
    for order in (scales, scales[::-1]):
        *parts, out = order
        pairs = [(scale, 0) for scale in parts]
        compare(quantized_joined, [within(pair, (out, 0)) for pair in pairs], pairs, 0, (out, 0))


def test_zero_points(quantized_joined, zeros):
    """One scale, different zero points."""
    for order in (zeros, zeros[::-1]):
        *parts, out = order
        pairs = [(0.125, zero) for zero in parts]
        codes = [within(pair, (0.125, out)) for pair in pairs]
        compare(quantized_joined, codes, pairs, 0, (0.125, out))


def test_ends(quantized_joined, scales, zeros):
    """Numbers beyond the result's range become −128 or 127."""
    pairs = list(zip(scales, zeros, strict=True))
    out = min(scales) / 6, zeros[3]
    tensors = [clear(pair, out[0]) for pair in pairs[:3]]
    compare(quantized_joined, tensors, pairs[:3], 0, out)
    # more steps than 16 and 32 bits count; powers of two, so that float32 has them exactly
    for steps_of_one in (2**9, 2**25):
        pairs = [(0.5, 3), (0.5, -7)]
        compare(quantized_joined, [CODES, CODES], pairs, 0, (0.5 / steps_of_one, 5))


def test_any_dimension(quantized_joined, scales, zeros):
    """Along any dimension, of parts in any layout; of one part, and of one without elements."""
    assert_kind(quantized_joined, ((7,),), 0)
    assert_kind(quantized_joined, ((0, 3), (2, 3)), 0)
    *pairs, out = list(zip(scales, zeros, strict=True))
    for dim in (0, 1, 2):
        tensors = []
        for size, pair in zip((3, 1, 2), pairs, strict=True):
            shape = [4, 4, 4]
            shape[dim] = size
            codes = within(pair, out)
            codes = codes[torch.linspace(0, len(codes) - 1, 16 * size).long()]
            tensors.append(codes.reshape(shape[::-1]).permute(2, 1, 0))
        tensors[1] = tensors[1][:1, :1, :1].expand([1 if d == dim else 4 for d in range(3)])
        compare(quantized_joined, tensors, pairs, dim, out)
