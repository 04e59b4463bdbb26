"""Checks of `ZeroOptimizer`: parameters against one plain optimizer's, and state counted by rank."""

import pytest
import torch
from torch import nn

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_holds,
    claimed,
    compared,
    gate,
    points,
)
from grader.ch08_ddp.probes.sharding import ZERO_MAKERS

ROUNDING = "the same operations on each element"


def some(rng, *shapes):
    return [torch.randn(shape, generator=rng, dtype=torch.float64) for shape in shapes]


def grads_for(rng, values, steps, missing=()):
    """Return gradients for each step; `missing` are pairs of a step and a parameter without one."""
    return [
        [
            None
            if (step, number) in missing
            else torch.randn(v.shape, generator=rng, dtype=torch.float64).to(v.dtype)
            for number, v in enumerate(values)
        ]
        for step in range(steps)
    ]


@pytest.fixture
def values(rng):
    return some(rng, (10, 10), (1,), (100,), (1,), (5, 18), (2,), (80,), ())


@pytest.fixture
def gradients(rng, values):
    return grads_for(rng, values, 3)


@pytest.fixture
def kind():
    return "adam"


@pytest.fixture
def ranks():
    return 2


def compare(found, values, gradients, kind):
    """Compare the parameters of every rank after every step with those of one optimizer."""
    params = [nn.Parameter(value.clone()) for value in values]
    optimizer = ZERO_MAKERS[kind](params)
    for step, grads in enumerate(gradients):
        for param, grad in zip(params, grads, strict=True):
            param.grad = grad
        optimizer.step()
        for number, rank in enumerate(found):
            for at, (got, right) in enumerate(zip(rank["params"][step], params, strict=True)):
                rtol = 1e-9 if right.dtype is torch.float64 else 1e-5
                kept = f"shape {tuple(right.shape)}, strides {values[at].stride()}"
                where = f"Rank {number}, parameter {at} ({kept}) after step {step + 1} of {kind}. "
                with about(of=where):
                    assert_close(got, right.detach(), rtol=rtol, atol=rtol / 10, because=ROUNDING)


@gate
def test_steps(zero_steps, values):
    """`step` moves parameters, on every rank and in place."""
    for rank in zero_steps.value:
        assert_holds(rank["in place"], "A parameter has other memory than before.")
        if all(torch.equal(a, b) for a, b in zip(rank["params"][0], values, strict=True)):
            raise Mismatch("No parameter has moved.")


@points(2)
def test_parameters(zero_steps, values, gradients, kind, rng):
    """After each step all ranks have the parameters of one optimizer of all of them."""
    compare(zero_steps.value, values, gradients, kind)
    compare(zero_steps.ask(values, gradients, "momentum", 3).value, values, gradients, "momentum")


@gate
def test_state_is_kept_once(zero_steps, values, gradients, kind, ranks, rng):
    """The state of each element is kept once among all ranks, and no rank keeps too much."""
    sorted_values = sorted(values, key=torch.Tensor.numel, reverse=True)
    for chosen, n in ((values, ranks), (sorted_values, ranks), (values, 3)):
        mine = gradients if chosen is values else grads_for(rng, chosen, 1)
        kept = [rank["kept"] for rank in zero_steps.ask(chosen, mine, kind, n).value]
        sizes = [value.numel() for value in chosen]
        compared(kept)
        assert_equal(sum(kept), sum(sizes), "Elements with state, over all ranks.")
        fair = sum(sizes) / n + max(sizes)
        if max(kept) > fair:
            raise Mismatch(
                "One rank keeps more than its part.",
                (("allowed", f"{fair:g} elements"), ("kept by each rank", repr(kept))),
            )


def test_few_parameters(zero_steps, kind, rng):
    """A rank that owns nothing takes part."""
    values = some(rng, (4,), (2, 3))
    gradients = grads_for(rng, values, 2)
    compare(zero_steps.ask(values, gradients, kind, 4).value, values, gradients, kind)


def test_gradients_that_are_none(zero_steps, values, rng):
    """What has no gradient stays as it is, and `zero_grad` clears all that there are."""
    missing = {(0, 0), (0, 3), (1, 2), (1, 4), (2, 0), (2, 7)}
    gradients = grads_for(rng, values, 3, missing)
    for n in (2, 3):
        found = zero_steps.ask(values, gradients, "decay", n).value
        compare(found, values, gradients, "decay")
        for rank in found:
            assert_holds(all(rank["cleared"]), "A `.grad` is not None afterwards.")


def test_layouts(zero_steps, kind, rng):
    """Transposed, gapped, empty and float32 parameters are treated like all others."""
    wide = some(rng, (6, 8), (6, 8), (0, 3), (5, 4), (2, 3, 4), (9,))
    values = [
        wide[0].t(), wide[1][:, :3], wide[2], wide[3].float(), wide[4].permute(2, 0, 1), wide[5][::2]
    ]  # fmt: skip
    gradients = grads_for(rng, values, 2)
    compare(zero_steps.ask(values, gradients, kind, 2).value, values, gradients, kind)


@claimed
def test_traffic(zero_steps, values):
    """In a step a rank says no more than the bytes of all parameters."""
    total = sum(value.nbytes for value in values)
    for number, rank in enumerate(zero_steps.value):
        compared(rank["said"])
        if max(rank["said"]) > total:
            raise Mismatch(
                f"Rank {number} sends more in one step than the bytes of all parameters.",
                (("allowed", f"{total} bytes"), ("in each step", repr(rank["said"]))),
            )
