"""Checks of `Meter`: against all values, pooled in float64."""

import math

import pytest
import torch

from grader import about, assert_close, assert_equal, claimed, draw_int, gate, points
from grader.ch11_watching.observed import assert_nothing_kept, assert_reads, assert_undisturbed

SUMS = "sums in float64, in any order, of some hundred values"
CANCELS = "the mean's own rounding is 1e-16 of it, a millionth of the spread"


@pytest.fixture
def beta():
    return 0.9


def batches(rng, sizes, dtype=torch.float32, *, kept=None, mean=0.0, spread=1.0):
    """Return updates (values, mask) of these sizes; with `kept`, as many of each batch count."""
    made = []
    for place, size in enumerate(sizes):
        values = (mean + spread * torch.randn(size, generator=rng, dtype=torch.float64)).to(dtype)
        mask = None
        if kept is not None:
            order = torch.randperm(values.numel(), generator=rng)
            mask = (order < kept[place]).view(values.shape)
        made.append((values, mask))
    return made


@pytest.fixture
def parts(rng):
    return [batches(rng, [(5,), (3,)])]


@pytest.fixture
def updates(rng):
    return batches(rng, [(4, 3), (2, 3), (5, 2)], kept=[7, 0, 4])


def counted(updates):
    """Return the values that count of each batch, in float64."""
    return [
        (values if mask is None else values[mask]).double().flatten() for values, mask in updates
    ]


def smooth(updates, beta):
    average = weight = 0.0
    for values in counted(updates):
        if len(values):
            average = beta * average + (1 - beta) * values.mean().item()
            weight = beta * weight + (1 - beta)
    return average / weight if weight else math.nan


def truth(parts, beta):
    """Return what the first meter must say."""
    values = torch.cat([torch.cat(counted(part)) for part in parts if part] or [torch.zeros(0)])
    count = len(values)
    return {
        "count": count,
        "mean": values.mean().item() if count else math.nan,
        "variance": values.var(correction=0).item() if count else math.nan,
        "smooth": smooth(parts[0], beta),
    }


def compare(got, expected, keys, *, rtol=1e-9, because=SUMS, of=""):
    """Compare some keys of what a meter said."""
    for key in keys:
        with about(of=f"{of}`{key}`: "):
            if key == "count":
                assert_equal(got[key], expected[key], "How many values have counted.")
            else:
                one, other = (torch.tensor(x[key], dtype=torch.float64) for x in (got, expected))
                # a float that `torch.where` chooses is a float32, with 6e-8 of rounding
                loose = max(rtol, 1e-6) if key == "smooth" else rtol
                assert_close(one, other, rtol=loose, atol=1e-12, because=because)


@gate
def test_a_dict_of_four(metered):
    """`value()` returns a dict with count, mean, variance and smooth, and says the same again."""
    got = metered.value
    kinds = {"count": "int", "mean": "float", "variance": "float", "smooth": "float"}
    for key in ("value", "again"):
        said = got[key]
        found = {k: type(v).__name__ for k, v in said.items()} if isinstance(said, dict) else said
        assert_equal(found, kinds, "What `value()` returns.")
    if not math.isfinite(got["value"]["mean"]):
        assert_equal(got["value"]["mean"], 0.5, "The mean of finite values.")
    assert_equal(got["again"], got["value"], "`value()`, asked a second time.")


@points(2)
def test_mean(metered, rng):
    """The mean of all values, in batches of any size, shape and dtype."""
    cases = [batches(rng, [(6,), (1,), (draw_int(rng, 2, 9), 3), ()])]
    cases += [batches(rng, [(40,), (7,)], torch.float16, mean=300.0)]
    cases += [batches(rng, [(40,), (7,)], torch.bfloat16, mean=-2.0)]
    cases += [batches(rng, [(300,)] * 3, torch.float32, mean=1e4)]
    for case in cases:
        got = metered.ask([case], 0.9).value["value"]
        with about(
            ("values", f"batches of {[tuple(v.shape) for v, _ in case]}, {case[0][0].dtype}")
        ):
            compare(got, truth([case], 0.9), ["count", "mean"])


@points(2)
def test_variance(metered, rng):
    """The variance, also where the spread is small beside the mean."""
    cases = [(batches(rng, [(6,), (1,), (9, 2)]), 1e-9)]
    cases += [(batches(rng, [(50,), (7,)], torch.float64, mean=1e8, spread=0.01), 1e-4)]
    cases += [(batches(rng, [(1,)] * 9, torch.float64, mean=-1e8, spread=0.01), 1e-4)]
    for case, rtol in cases:
        got = metered.ask([case], 0.9).value["value"]
        told = (
            f"batches of {[tuple(v.shape) for v, _ in case]}, the first {case[0][0].flatten()[0]}"
        )
        with about(("values", told)):
            compare(got, truth([case], 0.9), ["variance"], rtol=rtol, because=CANCELS)


@points(2)
def test_mask(metered, rng):
    """Only values count where the mask is true: pads do not, whatever they are."""
    plain = batches(rng, [(4, 3), (2, 5), (3, 3)], kept=[12, 3, 1])
    some = batches(rng, [(4, 3), (2, 5)], kept=[5, 9])
    hidden = [(torch.where(mask, values, math.nan), mask) for values, mask in some]
    hidden += [(torch.where(mask, values, math.inf), mask) for values, mask in plain]
    for case, told in ((plain, "finite"), (hidden, "NaN and inf")):
        got = metered.ask([case], 0.9).value["value"]
        with about(("mask", f"true for {[int(m.sum()) for _, m in case]}; the others are {told}")):
            compare(got, truth([case], 0.9), ["count", "mean", "variance"])


def test_nothing_counts(metered, rng):
    """An empty meter has NaN to tell, and a batch of which nothing counts changes nothing."""
    empty = truth([[]], 0.9)
    nothing = batches(rng, [(3, 2)], kept=[0])
    some = [*nothing, *batches(rng, [(5,)]), *nothing, *batches(rng, [(2,)]), *nothing]
    cases = [([], "no batch"), (nothing, "one batch of which nothing counts"), (some, "both kinds")]
    for case, told in cases:
        got = metered.ask([case], 0.9).value["value"]
        with about(("updates", told)):
            compare(got, truth([case], 0.9) if case is some else empty, empty)


@points(2)
def test_smooth(metered, default_beta, rng):
    """The running average of the batches' means is right from the first step on."""
    for steps, beta in ((1, 0.9), (2, 0.5), (12, 0.99), (5, 0.0)):
        case = batches(rng, [(draw_int(rng, 1, 6),) for _ in range(steps)], mean=2.0)
        got = metered.ask([case], beta).value["value"]
        with about(("steps", f"{steps}, with beta={beta}")):
            compare(got, truth([case], beta), ["smooth"])
    masked = batches(rng, [(6,), (4,), (5,)], kept=[2, 0, 5], mean=1.0)
    compare(metered.ask([masked], 0.8).value["value"], truth([masked], 0.8), ["smooth"])
    compare(default_beta.ask(case).value, truth([case], 0.98), ["smooth"])


@points(2)
def test_merge(metered, rng):
    """Two meters merged have seen all values of both; the other one stays as it is."""
    small, large = batches(rng, [(2,)], mean=5.0), batches(rng, [(8,), (9, 2)], mean=-1.0)
    far = batches(rng, [(30,)], torch.float64, mean=1e8, spread=0.01)
    near = batches(rng, [(7,)], torch.float64, mean=1e8, spread=0.01)
    cases = [[small, large], [large, small, large], [[], large], [small, []], [[], []], [far, near]]
    for case in cases:
        got = metered.ask(case, 0.9).value
        with about(("merged", f"meters of {[sum(v.numel() for v, _ in p) for p in case]} values")):
            rtol = 1e-4 if case[0] is far else 1e-9
            compare(got["value"], truth(case, 0.9), ["count", "mean", "variance"], rtol=rtol)
            compare(got["value"], truth(case, 0.9), ["smooth"])
            for other, part in zip(got["others"], case[1:], strict=True):
                compare(other, truth([part], 0.9), other, rtol=rtol, of="The other meter's ")


def test_nan_shows(metered, rng):
    """A NaN that counts is not swallowed."""
    case = batches(rng, [(5,), (4,)])
    case[0][0][2] = math.nan
    case += batches(rng, [(3,)])
    got = metered.ask([case], 0.9).value["value"]
    assert_equal(got["count"], 12, "How many values have counted.")
    shown = {key: math.isnan(got[key]) for key in ("mean", "variance", "smooth")}
    assert_equal(shown, dict.fromkeys(shown, True), "Which are NaN, where a value that counts is.")


@claimed
@points(2)
def test_reads(meter_reads, updates):
    """No read before `value()`, and one there at most."""
    got = meter_reads.value
    assert_reads(got["update"], 0, "by `update`")
    assert_reads(got["merge"], 0, "by `merge`")
    assert_reads(got["value"], 1, "by `value`")
    assert_reads(got["value of an empty meter"], 1, "by `value` of an empty meter")


@claimed
def test_nothing_is_kept(meter_keeps):
    """No graph stays alive, and no memory is added with each batch."""
    got = meter_keeps.ask(3, 12).value
    assert_nothing_kept(got["alive"], got["graphs"])


@gate
def test_the_run_is_the_same(meter_in_a_run):
    """A run whose losses the meter is shown is the same to the last bit."""
    got = meter_in_a_run.value
    assert_undisturbed(got)
