"""Checks of `stochastic_round`: all 65,536 noises, counted, for numbers of every kind."""

import pytest
import torch

from grader import Mismatch, assert_same_bits, assert_tensor, compared, gate, points
from grader.ch01_formats.patterns import as_float32, assert_all_nan, awkward, every_upper_half

NOISES = 65_536

LOWER = [0x8000, 0x0001, 0xFFFF, 0x1234]
"""Lower halves that decide: halfway, both ends, and one between."""


@pytest.fixture
def noise(rng):
    """Every noise once, shuffled: an answer must look at its value, not at its place."""
    return torch.randperm(NOISES, generator=rng).to(torch.int32)


@pytest.fixture
def x(rng):
    """Positive float32 of every magnitude, 20 random patterns."""
    return as_float32(torch.randint(1 << 23, 0x7F7F_0000, (20,), generator=rng))


def spread(x, noise):
    """Return each of `x` (n,) with every noise, both (n, 65536)."""
    return x[:, None].expand(-1, NOISES), noise.expand(len(x), -1)


def go_up(by_chance, x, noise, spare=1):
    """Fail unless each of `x` (n,) goes up for as many noises as its lower half says.

    `spare` are the noises that may be too many or too few. To count exactly is a check of its own, so
    that who counts one wrong in every number does not lose all the others.
    """
    values, noises = spread(x, noise)
    got = by_chance.ask(values, noises).value
    assert_tensor(got, dtype=torch.bfloat16, shape=values.shape)
    bits = x.view(torch.int32)
    step = got.view(torch.int16) - (bits >> 16).to(torch.int16)[:, None]
    up, stay = (step == 1).sum(1).tolist(), (step == 0).sum(1).tolist()
    lower = (bits & 0xFFFF).tolist()
    compared([up, stay], [lower, [NOISES - k for k in lower]])
    wrong = [i for i, k in enumerate(lower) if abs(up[i] - k) > spare or up[i] + stay[i] != NOISES]
    if not wrong:
        return
    first = min(wrong, key=lambda i: (int(bits[i]).bit_count(), lower[i]))
    astray = NOISES - up[first] - stay[first]
    elsewhere = f", elsewhere {astray} times" if astray else ""
    raise Mismatch(
        f"{len(wrong)} of {len(lower)} numbers do not go up as often as they should. "
        "The simplest, over all 65,536 noises:",
        (
            ("input", f"0x{int(bits[first]) & 0xFFFF_FFFF:08X} = {float(x[first]):.9g}"),
            ("expected", f"up {lower[first]} times, down {NOISES - lower[first]} times"),
            ("got", f"up {up[first]} times, down {stay[first]} times{elsewhere}"),
        ),
    )


def with_lower(upper):
    """Return float32 of these upper halves, each with a lower half that decides."""
    return as_float32((torch.tensor(upper) << 16) | torch.tensor(LOWER))


@gate
def test_shape_and_dtype(by_chance, x, noise):
    """Returns a `bfloat16` tensor of the same shape, and leaves its inputs alone."""
    value, chance = x[:12].reshape(3, 4), noise[:12].reshape(3, 4)
    assert_tensor(by_chance.ask(value, chance).value, dtype=torch.bfloat16, shape=value.shape)


def test_what_stays(by_chance, noise, rng):
    """What `bfloat16` holds stays for every noise: numbers, zeros, infinities. So does NaN."""
    exact = every_upper_half(0)
    for chance in (noise[: len(exact)], torch.full((len(exact),), 65_535, dtype=torch.int32)):
        assert_same_bits(by_chance.ask(exact, chance).value, exact.to(torch.bfloat16), of=exact)
    payload = torch.randint(1, 1 << 23, (2000,), generator=rng)
    edges = torch.tensor([1, 0x8000, 0xFFFF, 0x1_0000, 0x40_0000, 0x7F_FFFF])
    patterns = torch.cat([edges, payload]) | 0x7F80_0000
    nan = as_float32(torch.cat([patterns, patterns | 1 << 31]))
    for chance in (noise[: len(nan)], noise[-len(nan) :], torch.zeros(len(nan), dtype=torch.int32)):
        got = by_chance.ask(nan, chance).value
        assert_tensor(got, dtype=torch.bfloat16, shape=nan.shape)
        assert_all_nan(got, of=nan)


@points(3)
def test_exactly(by_chance, x, noise):
    """Numbers of either sign go up for exactly as many noises as their lower half says."""
    ones = with_lower([0x3F80] * 4)
    go_up(by_chance, torch.cat([ones, -ones, x[6:8], -x[8:10]]), noise, spare=0)


def test_positive_numbers(by_chance, x, noise):
    """Positive numbers of every magnitude: up as often as they have come of the way."""
    go_up(by_chance, with_lower([0x3F80, 0x3F81, 0x3FFF, 0x00FF]), noise)
    go_up(by_chance, x[:2], noise)


def test_negative_numbers(by_chance, x, noise):
    """Negative numbers do as their magnitudes do."""
    go_up(by_chance, -with_lower([0x3F80, 0x3F81, 0x3FFF, 0x00FF]), noise)
    go_up(by_chance, -x[2:4], noise)


def test_small_numbers(by_chance, noise):
    """Subnormal numbers follow the same rule, of both signs."""
    small = with_lower([0x0000, 0x0001, 0x0000, 0x007F])
    go_up(by_chance, torch.cat([small, -small]), noise, spare=0)


def test_large_numbers(by_chance, noise):
    """Beyond the largest number the upper neighbour is infinity."""
    go_up(by_chance, with_lower([0x7F7F, 0xFF7F, 0x7F7F, 0xFF7F]), noise, spare=0)


def test_own_noise_alone(by_chance, x, noise, rng):
    """Each element depends on its own number and its own noise alone, in any layout."""
    go_up(by_chance, x[4:6], noise)
    values, noises = spread(x[4:6], noise)
    got = by_chance.ask(values, noises).value
    order = torch.randperm(NOISES, generator=rng)[:1000]
    moved = by_chance.ask(values.t()[order], noises.t()[order]).value
    assert_same_bits(moved, got.t()[order], of=values.t()[order])
    for row, column in ((0, 7), (1, 65_000)):
        alone = by_chance.ask(values[row, column], noises[row, column]).value
        assert_same_bits(alone, got[row, column], of=values[row, column])
    for value, chance in zip(awkward(x), awkward(noise), strict=True):
        got = by_chance.ask(value, chance).value
        assert_tensor(got, dtype=torch.bfloat16, shape=value.shape)
