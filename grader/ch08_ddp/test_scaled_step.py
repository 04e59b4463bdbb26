"""Checks of `scaled_step`: against the norm and the step of one process that has all gradients."""

import math

import pytest
import torch

from grader import Mismatch, about, assert_close, assert_equal, assert_holds, claimed, gate, points

ROUNDING = "the same sums in float64, in another order"


def some(rng, *counts, dtype=torch.float64, size=(3, 2)):
    """Return so many gradients for each rank."""
    return [[torch.randn(size, generator=rng).to(dtype) for _ in range(n)] for n in counts]


@pytest.fixture
def shards(rng):
    return some(rng, 2, 3)


@pytest.fixture
def scale():
    return 8.0


@pytest.fixture
def max_norm():
    return 1000.0


def compare(found, shards, scale, max_norm, rtol=1e-9):
    """Compare norms and parameters with those of one process."""
    grads = [[g if g is None else g.double() / scale for g in mine] for mine in shards]
    squares = sum(float(g.square().sum()) for mine in grads for g in mine if g is not None)
    norm = math.sqrt(squares)
    factor = min(1.0, max_norm / norm) if norm else 1.0
    on = ("on", f"scale={scale:g}, max_norm={max_norm:g}, {[len(s) for s in shards]} parameters")
    for number, (rank, mine) in enumerate(zip(found, grads, strict=True)):
        with about(on, of=f"Rank {number}: "):
            assert_equal(type(rank["norm"]).__name__, "float", "The type of what is returned.")
            with about(of="the norm that is returned. "):
                assert_close(
                    torch.tensor(rank["norm"], dtype=torch.float64),
                    torch.tensor(norm, dtype=torch.float64),
                    rtol=1e-9,
                    atol=0,
                    because=ROUNDING,
                )
            if mine or rank["steps"]:  # a rank without parameters has nothing to step
                assert_equal(rank["steps"], 1, "The number of steps.")
            for at, (got, grad) in enumerate(zip(rank["params"], mine, strict=True)):
                right = torch.zeros_like(got) if grad is None else -(grad * factor).to(got.dtype)
                because = "one product and one step"
                with about(of=f"parameter {at} after `SGD(lr=1).step()`, which was 0. "):
                    assert_close(got, right, rtol=rtol, atol=rtol / 100, because=because)


@gate
def test_steps(scaled_steps):
    """Finite gradients make a step, and a norm comes back."""
    for rank in scaled_steps.value:
        assert_equal(type(rank["norm"]).__name__, "float", "The type of what is returned.")
        if not any(bool(param.any()) for param in rank["params"]):
            raise Mismatch("No parameter has moved.")


def test_norm(scaled_steps, shards, scale, max_norm, rng):
    """The norm is that of all ranks, and gradients are divided by the scale."""
    compare(scaled_steps.value, shards, scale, max_norm)
    shards = some(rng, 1, 4, 2)
    compare(scaled_steps.ask(shards, 1024.0, 1000.0).value, shards, 1024.0, 1000.0)


def test_clipping(scaled_steps, shards, rng):
    """What is too long is shortened to `max_norm`, on all ranks by the same factor."""
    for longest in (0.125, 0.01):
        compare(scaled_steps.ask(shards, 8.0, longest).value, shards, 8.0, longest)


@points(3)
def test_skipped(scaled_steps, rng):
    """An infinity or a NaN on one rank: no rank makes a step."""
    for where, what in ((0, math.inf), (1, math.nan), (1, -math.inf)):
        shards = some(rng, 2, 2)
        shards[where][1].view(-1)[3] = what
        for number, rank in enumerate(scaled_steps.ask(shards, 8.0, 1.0).value):
            with about(("on", f"a gradient of rank {where} has {what}"), of=f"Rank {number}. "):
                assert_equal(rank["norm"], None, "What is returned.")
                moved = [bool(param.any()) for param in rank["params"]]
                expected = (0, [False, False])
                assert_equal((rank["steps"], moved), expected, "Steps, and which of two moved.")
                assert_holds(all(rank["cleared"]), "A `.grad` is not None after a skipped step.")


def test_gaps(scaled_steps, rng):
    """Gradients that are `None`, ranks without parameters, nothing but zeros."""
    shards = some(rng, 0, 2)
    shards[1].insert(0, None)
    compare(scaled_steps.ask(shards, 4.0, 0.5).value, shards, 4.0, 0.5)
    shards = [[None], [], [torch.zeros(2, dtype=torch.float64)]]
    found = scaled_steps.ask(shards, 4.0, 0.5).value
    compare(found, shards, 4.0, 0.5)
    for rank in found:
        assert_holds(all(rank["cleared"]), "A `.grad` is not None afterwards.")


def test_large_and_narrow(scaled_steps, rng):
    """Gradients whose squares overflow their dtype are finite: they make a step, clipped."""
    for dtype, size in ((torch.float32, 1e30), (torch.float16, 3e4)):
        shards = [[(g * 0 + size * (0.5 + 0.1 * n)).to(dtype) for n, g in enumerate(mine)]
                  for mine in some(rng, 2, 2)]  # fmt: skip
        found = scaled_steps.ask(shards, 16.0, 1.0).value
        compare(found, shards, 16.0, 1.0, rtol=1e-5 if dtype is torch.float32 else 2e-3)


@claimed
def test_one_collective(scaled_steps):
    """One collective, of a few bytes."""
    for number, rank in enumerate(scaled_steps.value):
        if len(rank["said"]) > 1 or sum(rank["said"]) > 32:
            rows = ("allowed", "one, of 32 bytes"), ("bytes of each", repr(rank["said"]))
            raise Mismatch(f"Messages that rank {number} sent.", rows)
