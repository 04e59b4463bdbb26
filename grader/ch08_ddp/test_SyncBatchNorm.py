"""Checks of `SyncBatchNorm`: against torch's BatchNorm on the rows of all ranks, in float64."""

import pytest
import torch
import torch.nn.functional as F

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_tensor,
    claimed,
    gate,
    points,
)

ROUNDING = "the same sums in float64, in another order"

NAMES = {"mean": "running_mean", "var": "running_var"}
"""What the probe's results are called in a module."""


def some(rng, rows, shape=(4, 3), steps=2, offset=0.0):
    """Return inputs per rank and step: (rows of the rank, 4, 3), around an offset."""
    return [
        [torch.randn(n, *shape, generator=rng, dtype=torch.float64) + offset for _ in range(steps)]
        for n in rows
    ]


@pytest.fixture
def shards(rng):
    return some(rng, (5, 2))


@pytest.fixture
def factors(rng):
    return some(rng, (5, 2))


@pytest.fixture
def weight(rng):
    return torch.randn(4, generator=rng, dtype=torch.float64)


@pytest.fixture
def bias(rng):
    return torch.randn(4, generator=rng, dtype=torch.float64)


@pytest.fixture
def momentum():
    return 0.25


def whole(shards, factors, weight, bias, momentum):
    """Return what one process computes from all rows, cut into the ranks' parts, per step."""
    mean, var = torch.zeros_like(weight), torch.ones_like(weight)
    steps = []
    for step in range(len(shards[0])):
        sizes = [len(rank[step]) for rank in shards]
        x = torch.cat([rank[step].detach() for rank in shards]).requires_grad_()
        factor = torch.cat([rank[step] for rank in factors])
        y = F.batch_norm(x, mean, var, weight, bias, True, momentum)
        (grad,) = torch.autograd.grad((y * factor).sum(), x)
        flat = [d for d in range(x.dim()) if d != 1]
        shape = [-1 if d == 1 else 1 for d in range(x.dim())]
        normal = F.batch_norm(x.detach(), None, None, training=True)
        own = [
            {"weight.grad": (n * f).sum(flat), "bias.grad": f.sum(flat)}
            for n, f in zip(normal.split(sizes), factor.split(sizes), strict=True)
        ]
        assert len(shape) == x.dim()
        steps.append(
            [
                {"y": a, "x.grad": b, "mean": mean.clone(), "var": var.clone(), **rest}
                for a, b, rest in zip(y.detach().split(sizes), grad.split(sizes), own, strict=True)
            ]
        )
    return steps


def compare(found, expected, names, rtol=1e-8, because=ROUNDING):
    rows = [len(result["steps"][0]["y"]) for result in found]
    for rank, result in enumerate(found):
        for number, (step, right) in enumerate(zip(result["steps"], expected, strict=True), 1):
            for name in names:
                where = f"`{NAMES.get(name, name)}` on rank {rank} after forward {number}. "
                with about(("rows by rank", repr(rows)), of=where):
                    assert_close(
                        step[name], right[rank][name], rtol=rtol, atol=rtol, because=because
                    )


@gate
def test_normalises(synced_norm, shards, weight):
    """A module with a weight and a bias, whose output has the input's shape, normalised."""
    for rank, mine in zip(synced_norm.value, shards, strict=True):
        assert_equal(sorted(rank["parameters"]), ["bias", "weight"], "The names of parameters.")
        y = rank["steps"][0]["y"]
        assert_tensor(y, dtype=torch.float64, shape=mine[0].shape)
        if torch.equal(y, mine[0].detach()) or not bool(y.any()):
            raise Mismatch("The output is the input, or zero.")


def test_forward(synced_norm, shards, factors, weight, bias, momentum):
    """Outputs are those of all rows together, whatever part of them a rank has."""
    found = synced_norm.value
    compare(found, whole(shards, factors, weight, bias, momentum), ["y"])


@points(4)
def test_input_gradients(synced_norm, shards, factors, weight, bias, momentum):
    """The input's gradient is that of the sum of all ranks' losses."""
    found = synced_norm.value
    compare(found, whole(shards, factors, weight, bias, momentum), ["x.grad"])


def test_parameter_gradients(synced_norm, shards, factors, weight, bias, momentum):
    """Gradients of `weight` and `bias` come from the rank's own rows."""
    names = ["weight.grad", "bias.grad"]
    found = synced_norm.value
    compare(found, whole(shards, factors, weight, bias, momentum), names)


def test_running_statistics(synced_norm, shards, factors, weight, bias, momentum):
    """Running statistics begin at 0 and 1, and follow the mean and the unbiased variance of all."""
    found = synced_norm.value
    for rank in found:
        fresh = {name: rank["fresh"][name].tolist() for name in ("running_mean", "running_var")}
        assert_equal(fresh, {"running_mean": [0.0] * 4, "running_var": [1.0] * 4}, "At first.")
        assert_equal(rank["usual"], 1.0, "A running mean after the mean 10, momentum not given.")
    compare(found, whole(shards, factors, weight, bias, momentum), ["mean", "var"])


def test_evaluation(evaluated_norm, shards, factors, weight, bias, momentum):
    """In evaluation the running statistics are used and kept, and nobody talks."""
    last = whole(shards, factors, weight, bias, momentum)[-1]
    for rank, got in enumerate(evaluated_norm.value):
        mean, var = last[rank]["mean"], last[rank]["var"]
        x = shards[rank][0].detach().requires_grad_()
        y = F.batch_norm(x, mean, var, weight, bias, False)
        (grad,) = torch.autograd.grad((y * factors[rank][0]).sum(), x)
        assert_equal(got["said"], 0, "Messages.")
        for name, right in (("y", y.detach()), ("x.grad", grad), ("mean", mean), ("var", var)):
            with about(of=f"`{NAMES.get(name, name)}` on rank {rank}, in evaluation. "):
                assert_close(got[name], right, rtol=1e-8, atol=1e-8, because=ROUNDING)


def test_shapes(synced_norm, weight, bias, momentum, rng):
    """Two to five dimensions, any layout, three ranks, one of them without rows."""
    names = ["y", "x.grad", "weight.grad", "mean", "var"]
    for rows, shape in (((3, 0, 4), (4,)), ((0, 2, 1), (4, 3, 2)), ((1, 1, 1), (4, 1, 2, 3))):
        shards = some(rng, rows, shape, 1)
        factors = some(rng, rows, shape, 1)
        # features last in memory, as in channels_last
        shards = [[x.movedim(1, -1).contiguous().movedim(-1, 1) for x in r] for r in shards]
        found = synced_norm.ask(shards, factors, weight, bias, momentum).value
        compare(found, whole(shards, factors, weight, bias, momentum), names)


def test_far_from_zero(synced_norm, weight, bias, momentum, rng):
    """Float32 values around 1000 keep their variance."""
    shards = some(rng, (40, 24), (4,), 1, offset=1000.0)
    shards = [[x.float() for x in rank] for rank in shards]
    factors = some(rng, (40, 24), (4,), 1)
    expected = whole([[x.double() for x in r] for r in shards], factors, weight, bias, momentum)
    narrow = [[f.float() for f in rank] for rank in factors]
    found = synced_norm.ask(shards, narrow, weight.float(), bias.float(), momentum).value
    for step in (step for rank in found for step in rank["steps"]):
        step.update({name: step[name].double() for name in ("y", "x.grad", "var")})
    because = "a mean of 1000 in float32 is off by 6e-5"
    compare(found, expected, ["y", "x.grad", "var"], rtol=2e-3, because=because)


@claimed
def test_traffic(synced_norm, weight, bias, momentum, rng):
    """What a rank says does not grow with its rows, neither forward nor backward."""
    shards, factors = some(rng, (60, 80), steps=1), some(rng, (60, 80), steps=1)
    allowed = 8 * (6 * 4 + 4)
    found = synced_norm.ask(shards, factors, weight, bias, momentum).value
    for number, rank in enumerate(found):
        for pass_, said in zip(("forward", "backward"), rank["steps"][0]["said"], strict=True):
            if said > allowed:
                raise Mismatch(
                    f"Rank {number}, which has {len(shards[number][0])} rows, sends too much in its {pass_}.",
                    (("allowed", f"{allowed} bytes"), ("sent", f"{said} bytes")),
                )
