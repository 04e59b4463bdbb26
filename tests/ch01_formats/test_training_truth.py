"""Sums, training steps, quantization and split products: the references against exact arithmetic."""

import math
from fractions import Fraction
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import references

reference = partial(references.reference, "ch01_formats")
SEEDS = st.integers(0, 2**32 - 1)
CODES = torch.arange(-128, 128).to(torch.int8)
ROUNDING = 2.0**-24
TIE = 0.01
"""As in the exercise: nothing this close to a tie, in steps, is looked at."""

few = settings(max_examples=20, derandomize=True, database=None)
some = settings(max_examples=100, derandomize=True, database=None)


def generator(seed):
    return torch.Generator().manual_seed(seed)


def awkward(x, seed):
    """Return `x` (rows, columns) in one of three layouts."""
    return (x, x.t().contiguous().t(), x.repeat_interleave(2, 1)[:, ::2])[seed % 3]


@some
@given(SEEDS, st.integers(0, 120), st.integers(0, 60))
def test_sums_are_exact_to_their_bound(seed, rows, reach):
    rng = generator(seed)
    x = torch.randn(rows, 5, generator=rng) * torch.exp2(reach * torch.rand(rows, 5, generator=rng))
    x = torch.cat([x, -x[: rows // 2]])[torch.randperm(rows + rows // 2, generator=rng)]
    for terms in (x, x.bfloat16()):
        got = reference("compensated_sum")(awkward(terms, seed)).tolist()
        for result, column in zip(got, terms.float().t().tolist(), strict=True):
            exact = sum(map(Fraction, column), Fraction(0))
            size = math.fsum(map(abs, column))
            bound = 2 * ROUNDING * abs(float(exact)) + (len(column) * ROUNDING) ** 2 * size
            assert abs(float(Fraction(result) - exact)) <= bound


@few
@given(SEEDS, st.integers(1, 200), st.integers(-14, 0))
def test_weights_arrive_within_one_step(seed, steps, exponent):
    rng = generator(seed)
    weight = torch.randn(40, generator=rng).bfloat16()
    grads = (torch.randn(steps, 40, generator=rng) + 0.5).bfloat16()
    lr = 2.0**exponent / 3
    exact = weight.double() - lr * grads.double().sum(0)
    state = None
    for grad in grads:
        state = reference("sgd_step")(weight, grad, lr, state)
    step = torch.exp2(exact.abs().clamp(min=2.0**-126).log2().floor() - 7)
    assert bool(((weight.double() - exact).abs() <= step).all())


@some
@given(SEEDS, st.integers(-10, 24), st.integers(1, 3), st.integers(0, 3))
def test_unscaling_loses_nothing_and_skips_what_overflowed(seed, exponent, interval, bad):
    rng = generator(seed)
    patterns = torch.randint(-(2**15), 2**15, (3, 50), generator=rng).to(torch.int16)
    grads = list(patterns.view(torch.float16).nan_to_num(0.0, 1.0, -1.0))
    if bad:
        grads[bad - 1][seed % 50] = (math.inf, -math.inf, math.nan)[seed % 3]
    scale, streak = 2.0**exponent, interval - 1
    out, new_scale, new_streak = reference("loss_scale_step")(grads, scale, streak, interval)
    if bad:
        assert (out, new_scale, new_streak) == (None, scale / 2, 0)
        return
    assert (new_scale, new_streak) == (scale * 2, 0)
    for got, grad in zip(out, grads, strict=True):
        assert torch.equal(got.double(), grad.double() / scale)


@pytest.mark.filterwarnings("ignore:torch.quantize_per")  # deprecated, and still the oracle
@some
@given(SEEDS, st.sampled_from([None, 0, 1]))
def test_quantizing_is_torchs(seed, axis):
    rng = generator(seed)
    x = torch.randn(6, 50, generator=rng) * torch.rand(6, 1, generator=rng) * 10
    x = x + 3 * torch.randn(6, 1, generator=rng)
    q, scale, zero = reference("quantize")(awkward(x, seed), axis)
    if axis is None:
        oracle = torch.quantize_per_tensor(x, float(scale), int(zero), torch.qint8)
    else:
        oracle = torch.quantize_per_channel(x, scale, zero, axis, torch.qint8)
    # quantize_per_* multiplies by a reciprocal, so a tie may fall on either side of it
    steps = (x / (scale if axis != 0 else scale.unsqueeze(1))).double()
    clear = (steps - steps.floor() - 0.5).abs() > TIE
    assert torch.equal(q[clear], oracle.int_repr()[clear])
    groups = x.reshape(1, -1) if axis is None else x.movedim(axis, 0).flatten(1)
    width = groups.amax(1).clamp(min=0) - groups.amin(1).clamp(max=0)
    torch.testing.assert_close(scale.reshape(-1), width / 255, rtol=1e-6, atol=1.2e-7)


def parameters(rng):
    """Return a scale and a zero point."""
    scale = float(torch.exp2(4 * torch.rand((), generator=rng) - 6))
    return scale, int(torch.randint(-128, 128, (), generator=rng))


def nearest(exact, zero):
    """Return codes for numbers in steps (n,), and which of them are not near a tie."""
    clear = (exact - exact.floor() - 0.5).abs() >= TIE
    return (torch.round(exact) + zero).clamp(-128, 127).to(torch.int8), clear


@some
@given(SEEDS)
def test_all_pairs_of_codes_add_to_the_nearest(seed):
    rng = generator(seed)
    (sx, zx), (sy, zy), (scale, zero) = (parameters(rng) for _ in range(3))
    qx, qy = CODES.repeat_interleave(256), CODES.repeat(256)
    got = reference("quantized_add")((qx, sx, zx), (qy, sy, zy), scale, zero)
    exact = (qx.double() - zx) * (sx / scale) + (qy.double() - zy) * (sy / scale)
    expected, clear = nearest(exact, zero)
    assert torch.equal(got[clear], expected[clear])


@some
@given(SEEDS, st.integers(1, 4), st.integers(0, 2))
def test_parts_are_written_in_the_results_own_code(seed, count, dim):
    rng = generator(seed)
    scale, zero = parameters(rng)
    parts, exact = [], []
    for _ in range(count):
        shape = [3, 4, 5]
        shape[dim] = int(torch.randint(0, 6, (), generator=rng))
        q = torch.randint(-128, 128, shape, generator=rng).to(torch.int8)
        its_scale, its_zero = parameters(rng)
        parts.append((q, its_scale, its_zero))
        exact.append((q.double() - its_zero) * (its_scale / scale))
    expected, clear = nearest(torch.cat(exact, dim), zero)
    got = reference("quantized_concat")(parts, dim, scale, zero)
    assert torch.equal(got[clear], expected[clear])


@some
@given(SEEDS, st.integers(1, 6), st.integers(1, 300), st.integers(1, 6))
def test_int8_products_are_those_of_whole_numbers(seed, m, k, n):
    rng = generator(seed)
    a, b = (torch.randint(-128, 128, s, generator=rng).to(torch.int8) for s in ((m, k), (k, n)))
    a_zero, b_zero = torch.randint(-128, 128, (2,), generator=rng).tolist()
    got = reference("int8_matmul")(
        awkward(a, seed), a_zero, awkward(b, seed + 1), b_zero, lambda x, y: x.int() @ y.int()
    )
    exact = (a.long() - a_zero) @ (b.long() - b_zero)
    assert got.dtype is torch.int32 and torch.equal(got.long(), exact)


@some
@given(SEEDS, st.integers(1, 8), st.integers(1, 64), st.integers(0, 40))
def test_three_pieces_are_as_good_as_float32(seed, m, k, reach):
    rng = generator(seed)
    spread = torch.exp2(2 * reach * torch.rand(m, k, generator=rng) - reach).clamp(2**-39, 2**39)
    a = torch.where(torch.rand(m, k, generator=rng) < 0.5, spread, -spread)
    b = a.t().flip(0) + 0.5 * a.t().sign()
    b = torch.where(b.abs() < 2.0**-40, 1.0, b).clamp(-(2.0**40), 2.0**40)
    work = []

    def unit(x, y):
        work.append(x.shape[0] * x.shape[1] * y.shape[1])
        assert x.dtype is y.dtype is torch.bfloat16
        return x.float() @ y.float()

    got = reference("matmul_bf16x3")(a, b, unit)
    error = (got.double() - a.double() @ b.double()).abs()
    assert bool((error <= 2.0**-20 * (a.double().abs() @ b.double().abs())).all())
    assert sum(work) <= 6 * m * k * m
