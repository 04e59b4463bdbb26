"""Checks of `ActivationStats`: against statistics of all that the watched modules returned."""

import math

import pytest
import torch

from grader import about, assert_close, assert_equal, claimed, draw_int, gate, points
from grader.ch11_watching.observed import assert_nothing_kept, assert_reads, assert_undisturbed
from grader.ch11_watching.probes.small import built, shapes_of

KEYS = ("elements", "mean", "std", "zeros", "largest")
SUMS = "sums in float64, in any order"
SQUARES = "a difference of squares loses the digits that the mean has more than the spread"


def weights_of(kind, rng, dtype=torch.float32, bias=0.0):
    """Return weights for a model; `bias` is added to all that is a vector."""
    return [
        (torch.randn(shape, generator=rng) + (bias if len(shape) == 1 else 0)).to(dtype)
        for shape in shapes_of(kind)
    ]


@pytest.fixture
def kind():
    return "plain"


@pytest.fixture
def names():
    return ["0", "1"]


@pytest.fixture
def every():
    return 1


@pytest.fixture
def weights(rng):
    return weights_of("plain", rng)


@pytest.fixture
def batches(rng):
    return [torch.randn(3, 4, generator=rng), torch.randn(5, 4, generator=rng)]


@pytest.fixture
def calls(batches):
    return [("train", x) for x in batches]


def floating(output):
    """Return the floating tensors in an output, as float64, flat."""
    if isinstance(output, torch.Tensor):
        return [output.detach().double().flatten()] if output.is_floating_point() else []
    if isinstance(output, dict):
        output = output.values()
    if isinstance(output, list | tuple) or not isinstance(output, str | None):
        return [x for part in output for x in floating(part)]
    return []


def truth(kind, weights, names, every, calls):
    """Return the report: statistics of copies of all that was returned in watched calls."""
    model = built(kind, weights)
    modules = dict(model.named_modules())
    seen, watched = {name: [] for name in names}, False

    def note(name):
        def hook(module, inputs, output):
            if watched:
                seen[name].extend(x.clone() for x in floating(output))

        return hook

    for name in names:
        modules[name].register_forward_hook(note(name))
    trained = 0
    for mode, x in calls:
        if mode in ("train", "eval"):
            watched = mode == "train" and trained % every == 0
            trained += mode == "train"
            model.train(mode == "train")(x.clone())
            watched = False
        else:
            modules[mode](x.clone())
    return {name: statistics(torch.cat([torch.zeros(0), *parts])) for name, parts in seen.items()}


def statistics(x):
    if not len(x):
        return {"elements": 0, **dict.fromkeys(KEYS[1:], math.nan)}
    return {
        "elements": len(x),
        "mean": x.mean().item(),
        "std": x.std(correction=0).item(),
        "zeros": (x == 0).double().mean().item(),
        "largest": x.abs().max().item(),
    }


def compare(got, expected, keys=KEYS):
    assert_equal(sorted(got), sorted(expected), "The names in the report.")
    for name in expected:
        for key in keys:
            with about(of=f"`{key}` of {name or 'the model'!r}: "):
                if key == "elements":
                    assert_equal(got[name][key], expected[name][key], "How many numbers were seen.")
                    continue
                one, other = (torch.tensor(x[name][key]).double() for x in (got, expected))
                rtol, why = (1e-4, SQUARES) if key == "std" else (1e-9, SUMS)
                assert_close(one, other, rtol=rtol, atol=1e-12, because=why)


def asked(stats, kind, weights, names, every, calls, keys=KEYS):
    """Compare the report of some calls."""
    got = stats.ask(kind, weights, names, every, calls).value
    told = ", ".join(f"{mode} {tuple(x.shape)}" for mode, x in calls)
    with about(("model", kind), ("calls", f"{told}; every={every}, names={names}")):
        compare(got, truth(kind, weights, names, every, calls), keys)


@gate
def test_a_dict_of_dicts(stats):
    """`report()` returns a dict with the five keys for each name, and has seen something."""
    got = stats.value
    found = {name: sorted(one) for name, one in got.items()} if isinstance(got, dict) else repr(got)
    assert_equal(found, {"0": sorted(KEYS), "1": sorted(KEYS)}, "What the report has.")
    kinds = {key: type(got["0"][key]).__name__ for key in KEYS}
    assert_equal(
        kinds, dict.fromkeys(KEYS, "float") | {"elements": "int"}, "The types of what it has."
    )
    assert_equal(got["0"]["elements"], 48, "How many numbers were seen of '0'.")


@points(3)
def test_pooled(stats, rng):
    """Statistics of all batches together, whatever their sizes."""
    for sizes in ((3,), (5, 1), (2, 7, 4)):
        calls = [("train", torch.randn(size, 4, generator=rng)) for size in sizes]
        asked(stats, "plain", weights_of("plain", rng), ["0", "1", "2"], 1, calls)
    calls = [("train", 1e-3 * torch.randn(20, 4, generator=rng)) for _ in range(2)]
    asked(stats, "plain", weights_of("plain", rng, bias=-0.2), ["2"], 1, calls, ["mean", "std"])


def test_half(stats, rng):
    """Activations of half precision are added up in a wider format."""
    weights = [w * 100 for w in weights_of("half", rng, torch.float16, bias=2.0)]
    calls = [("train", (100 * torch.rand(90, 4, generator=rng)).half())]
    asked(stats, "half", weights, ["0", "1"], 1, calls)


@points(2)
def test_at_once(stats, rng):
    """What a module returned is seen before the next one writes to it."""
    calls = [("train", torch.randn(6, 4, generator=rng)) for _ in range(2)]
    asked(stats, "in place", weights_of("in place", rng), ["0", "1"], 1, calls)


@points(2)
def test_every(stats, rng):
    """The first call in training mode is watched, and every so many-th after it."""
    for every, count in ((2, 5), (3, 3), (3, 7)):
        calls = [
            ("train", torch.randn(draw_int(rng, 1, 5), 4, generator=rng)) for _ in range(count)
        ]
        asked(stats, "plain", weights_of("plain", rng), ["0", "2"], every, calls)


@points(2)
def test_which_calls(stats, rng):
    """Calls in eval mode do not count, nor do those of a module by itself."""
    modes = ["0", "eval", "train", "eval", "0", "train", "0", "eval", "train", "0"]
    calls = [(mode, torch.randn(3, 4, generator=rng)) for mode in modes]
    for every in (1, 2):
        asked(stats, "plain", weights_of("plain", rng), ["0", "1"], every, calls)
    asked(stats, "plain", weights_of("plain", rng), ["1", "2"], 1, calls[:2])


def test_several_calls(stats, rng):
    """A module that is called several times is seen each time."""
    calls = [("train", torch.randn(4, 4, generator=rng)) for _ in range(3)]
    asked(stats, "twice", weights_of("twice", rng), ["1.layer", "1.act", "1"], 2, calls)


@points(2)
def test_nested_outputs(stats, rng):
    """All floating tensors in tuples, lists and dicts count; whole numbers and `None` do not."""
    calls = [("train", torch.randn(4, 4, generator=rng)) for _ in range(2)]
    asked(stats, "answers", weights_of("answers", rng), ["1", ""], 1, calls)


def test_report_within(stats_default, weights, batches):
    """`report()` within the `with` and after it; by default every call is watched, and none after it."""
    got = stats_default.value
    for place, count in enumerate((1, 2)):
        calls = [("train", x) for x in batches[:count]]
        with about(("report", f"after {count} calls")):
            compare(got[place], truth("plain", weights, ["0"], 1, calls))


@claimed
@points(2)
def test_reads(stats_cost):
    """No read before `report()`, and one there."""
    assert_reads(stats_cost.value["before"], 0, "before `report()`")
    assert_reads(stats_cost.value["report"], 1, "by `report()`")


@claimed
def test_nothing_is_kept(stats_cost):
    """No graph and no activation stays alive."""
    assert_nothing_kept(stats_cost.value["alive"], stats_cost.value["graphs"])


@gate
def test_the_run_is_the_same(stats_in_a_run):
    """A run that is watched is the same to the last bit."""
    assert_undisturbed(stats_in_a_run.value)


@points(2)
def test_gone(stats_in_a_run):
    """After an error your hooks are gone, those of others are not, and the error goes on."""
    got = stats_in_a_run.value
    assert_equal(got["went on"], True, "Whether an error that ends the `with` goes on.")
    assert_equal(got["after"], got["before"], "The hooks after it: another's one was there before.")
