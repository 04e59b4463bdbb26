"""Checks of `weighted_indices`: against exact fractions of whole weights."""

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate

import pytest
import torch

from grader import Mismatch, assert_equal, assert_holds, assert_raises, compared, gate, points

LARGEST = 1 - 2.0**-53
"""The largest float64 below 1, and so the largest uniform number there is."""


def float64(numbers):
    return torch.tensor(numbers, dtype=torch.float64)


@pytest.fixture
def weights(rng):
    """float64 (24,): whole numbers, about a quarter of them zero; the first and last among them."""
    drawn = torch.randint(-2, 7, (24,), generator=rng).clamp(min=0)
    drawn[[0, 7, 8, -1]] = 0
    drawn[[1, 2, 3]] = 3
    return drawn.double()


@pytest.fixture
def uniforms(rng):
    return torch.rand(40, generator=rng, dtype=torch.float64)


@pytest.fixture
def replacement():
    return True


def drawn(weights, uniforms, replacement):
    """Return the indices, by exact arithmetic."""
    left, result = [Fraction(w) for w in weights.tolist()], []
    for u in uniforms.tolist():
        ends = list(accumulate(left))
        result.append(bisect_right(ends, Fraction(u) * ends[-1]))
        if not replacement:
            left[result[-1]] = Fraction(0)
    return result


def compare(weighted_draws, weights, uniforms, replacement, what=""):
    got = weighted_draws.ask(weights, uniforms, replacement).value
    expected = drawn(weights, uniforms, replacement)
    if got == expected or not isinstance(got, list) or len(got) != len(expected):
        assert_equal(got, expected, f"The indices. {what}")
        return
    at = next(n for n, pair in enumerate(zip(got, expected, strict=True)) if pair[0] != pair[1])
    try:
        assert_equal(got, expected)
    except Mismatch:
        rows = [
            ("weights", str([f"{w:g}" for w in weights.tolist()]).replace("'", "")),
            ("u", f"{uniforms[at].item():.17g}"),
            ("expected", str(expected[at])),
            ("got", str(got[at])),
        ]
        if not replacement:
            rows.insert(1, ("gone", str(expected[:at])))
        raise Mismatch(f"Draw number {at} is another index. {what}".strip(), tuple(rows)) from None


@gate
def test_list(weighted_draws):
    """Returns a list with one whole number for each uniform number."""
    got = weighted_draws.value
    assert_holds(
        isinstance(got, list), "What comes back is not a list.", ("got", type(got).__name__)
    )
    kinds = sorted({type(index).__name__ for index in got})
    assert_equal(len(got), 40, "How many indices, for 40 uniform numbers.")
    assert_equal(kinds, ["int"], "The types of the indices.")


@points(3)
def test_with_replacement(weighted_draws, weights, uniforms):
    """With replacement, each number picks by weight, whatever the weights add up to."""
    compare(weighted_draws, weights, uniforms, True)
    compare(weighted_draws, weights / 1024, uniforms, True)
    compare(weighted_draws, torch.tensor([0.25]), uniforms[:3], True)


def test_edges(weighted_draws):
    """A dart on a boundary picks the next piece that has a length; so do 0 and the largest."""
    on_the_edge = float64([0.0, 0.25, 0.5, 0.75, 0.25 - 2.0**-54, LARGEST])
    for weights in ([0.0, 2, 0, 0, 2, 4, 0], [1.0] * 4, [0.0, 0, 5, 0]):
        compare(weighted_draws, float64(weights), on_the_edge, True)
        compare(weighted_draws, float64(weights), on_the_edge[:1], False)
    for count in (6, 10, 49):
        largest = float64([LARGEST])
        compare(weighted_draws, float64([1.0] * count), largest, True)
        compare(weighted_draws, float64([1.0] * count), largest, False)


@points(2)
def test_without_replacement(weighted_draws, weights, uniforms):
    """Without replacement, each number picks by weight among those that are left."""
    for count in (1, 2, 6):
        compare(weighted_draws, weights, uniforms[:count], False)
    for start in range(6, 36, 6):
        compare(weighted_draws, weights / 8, uniforms[start : start + 6], False)


def test_everything(weighted_draws, weights, uniforms):
    """As many draws as positive weights: each of those once, in the right order."""
    positive = int((weights > 0).sum())
    compare(weighted_draws, weights, uniforms[:positive], False)
    compare(weighted_draws, weights, float64([0.0] * positive), False)
    compare(weighted_draws, weights, float64([LARGEST] * positive), False)
    compare(weighted_draws, torch.ones(40), uniforms, False)


def test_any_weights(weighted_draws, weights, uniforms):
    """Weights of any dtype and layout, added up in `float64`; no `uniforms` at all."""
    huge = torch.tensor([2.0**24, 1, 1, 1, 0, 1])
    just_after = float64([(2.0**24 + n + 0.5) / (2.0**24 + 4) for n in range(4)])
    compare(weighted_draws, huge, just_after, True, "A float32 sum loses the ones.")
    compare(weighted_draws, huge, just_after[1:2], False)
    for other in (
        weights.to(torch.int64),
        weights.to(torch.uint8),
        weights.half(),
        torch.stack([weights, weights + 1], 1)[:, 0],
        weights.bfloat16()[1:2].expand(9),
    ):
        for replacement in (True, False):
            count = 40 if replacement else 5
            compare(weighted_draws, other, uniforms[::2][:count], replacement)
    for some in (weights, torch.zeros(3), torch.zeros(0)):
        for replacement in (True, False):
            compare(weighted_draws, some, uniforms[:0], replacement)


def test_refuses(weighted_draws, uniforms):
    """Negative, infinite and NaN weights, and too few positive ones, raise `ValueError`."""
    bad = [[1.0, -1.0, 3.0], [1.0, torch.inf], [torch.nan, 1.0], [2.0, -torch.inf], [-0.5]]
    cases = [(one, 1, replacement) for one in bad for replacement in (True, False)]
    cases += [([0.0, 0.0], 1, True), ([], 2, True), ([0.0], 1, False)]
    cases += [([1.0, 0.0, 2.0], 3, False), ([1.0, 1.0], 3, False), ([-1.0], 0, True)]
    found = [
        weighted_draws.ask(float64(weights), uniforms[:count], replacement)
        for weights, count, replacement in cases
    ]
    # what each of them raised is evidence, also behind the first that fails
    compared([got.raised is not None for got in found])
    for (weights, count, replacement), got in zip(cases, found, strict=True):
        given = f"torch.tensor({weights}, dtype=torch.float64)"
        call = f"weighted_indices({given}, torch.rand({count}), {replacement})"
        assert_raises(got, "ValueError", "Weights that cannot be drawn from.", ("call", call))
    compare(weighted_draws, float64([1.0, 0.0, 2.0]), uniforms[:2], False)
    compare(weighted_draws, float64([0.0, 3.0]), uniforms, True)
