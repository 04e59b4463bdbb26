"""Checks of `parameter_groups`: a cover without overlap, biases, norms, ties, freezing."""

import pytest

from grader import about, assert_equal, assert_holds, gate, points, python_random
from grader.ch04_modules.probes.groups import KINDS, assemble

DECAYING = ("linear", "no bias", "conv", "embedding", "scale", "relu")
NORMS = ("batch norm", "instance norm", "layer norm", "group norm", "rms norm", "own norm")
PLACES = ("norm", "bias_net.0", "layer1", "layer10", "layer1.deep.bias", "1", "10.0", "head")


@pytest.fixture
def random(rng):
    return python_random(rng)


def expected_groups(layers, ties, frozen):
    """Return both groups by first names; `frozen` are names of parameters."""
    model = assemble(layers, ties)
    norms = {f"{kind}" for kind in NORMS}
    kinds = dict(layers)
    held_by_norm, bias = set(), set()
    for name, parameter in model.named_parameters(remove_duplicate=False):
        path, _, last = name.rpartition(".")
        kind = kinds.get(path, "")
        kind = kinds[kind[1:]] if kind.startswith("=") else kind
        if kind in norms:
            held_by_norm.add(parameter)
        if "bias" in last:
            bias.add(parameter)
    groups = [], []
    for name, parameter in model.named_parameters():
        if name not in frozen:
            groups[parameter in held_by_norm or parameter in bias].append(name)
    return list(groups)


def compare(grouped, layers, ties=(), beforehand=(), frozen=None, names_frozen=()):
    """Compare the groups, and what is frozen: `names_frozen` are first names."""
    got = grouped.ask(layers, list(ties), list(beforehand), frozen, 0.25).value
    all_frozen = {*beforehand, *names_frozen}
    first = [name for name, _ in assemble(layers, ties).named_parameters()]
    with about(*called(layers, ties, beforehand, frozen)):
        said = "A ValueError was raised, where every path leads to a parameter."
        assert_holds(got["raised"] is None, said, ("it says", str(got["raised"])))
        expected = [n for n in first if n in all_frozen]
        assert_equal(got["frozen"], expected, "Other parameters are frozen afterwards.")
        said = "An optimiser refuses these groups."
        assert_holds(got["refused"] is None, said, ("it says", str(got["refused"])))
        decaying, other = expected_groups(layers, ties, all_frozen)
        assert_equal(len(got["groups"]), 2, "The number of groups.")
        (found, decay), (found_other, no_decay) = got["groups"]
        assert_equal(found, decaying, "The group with weight decay holds other parameters.")
        assert_equal(found_other, other, "The group without weight decay holds other parameters.")
        assert_equal((decay, no_decay), (0.25, 0.0), "The groups' `weight_decay`.")


def called(layers, ties=(), beforehand=(), frozen=None):
    """Return the rows that say which model was sorted, and how."""
    rows = [("layers", ", ".join(f"{path}: {_kind(kind)}" for path, kind in layers))]
    if ties:
        rows.append(("tied", ", ".join(f"{one} = {other}" for one, other in ties)))
    if beforehand:
        rows.append(("frozen before", ", ".join(beforehand)))
    rows.append(("call", f"parameter_groups(model, 0.25{'' if frozen is None else f', {frozen}'})"))
    return rows


def _kind(kind):
    return f"the same as {kind[1:]}" if kind.startswith("=") else kind


def drawn(random, kinds, places=PLACES):
    """Return layers of random kinds at some of the places, parents before children."""
    chosen = random.sample(places, random.randint(3, len(places)))
    chosen = [path for path in places if path in chosen]
    return [[path, random.choice(kinds)] for path in chosen]


@gate
def test_two_groups(grouped):
    """Returns two groups, with and without weight decay, each a dict."""
    layers = [["a", "no bias"]]
    groups = grouped.ask(layers, [], [], None, 0.25).value["groups"]
    with about(*called(layers)):
        # each as its parameters' names and its decay
        assert_equal(groups, [(["a.weight"], 0.25), ([], 0.0)])


def test_biases(grouped, random):
    """What is called a bias does not decay, in every layer; all else is there once, in order."""
    plain = (*DECAYING, "lstm", "attention")
    places = ("norm", "layer1", "layer10", "layer1.deep", "1", "head")
    compare(grouped, [["layer1", "lstm"], ["head", "attention"]])
    for _ in range(25):
        compare(grouped, drawn(random, plain, places))


def test_norms(grouped, random):
    """What a norm of any kind holds does not decay, told by type and not by name or shape."""
    # first, for it tells apart who looks at the exact type and who looks at its name
    compare(grouped, [["a", "own norm"], ["b", "called norm"]])
    places = ("norm", "layer1", "layer10", "layer1.deep", "bn", "head", "scale")
    for _ in range(25):
        layers = drawn(random, (*NORMS, "no bias", "scale"), places)
        compare(grouped, [["plain", "scale"], *layers, ["gain", random.choice(NORMS)]])


def test_paths(grouped, random):
    """A path that contains `bias` or `norm` makes no bias or norm of what is below."""
    for kind in ("no bias", "scale", "embedding"):
        compare(grouped, [["bias_net.0", kind], ["norm", kind], ["layer_norm.bias.1", kind]])
    for _ in range(10):
        compare(grouped, drawn(random, tuple(KINDS)))


@points(2.5)
def test_tied(grouped, random):
    """What has several names is there once; one name that rules out decay is enough."""
    shared = [["a", "linear"], ["b", "scale"], ["c.0", "=a"], ["d", "layer norm"], ["e", "=d"]]
    compare(grouped, shared)
    compare(grouped, [*shared, ["f", "linear"]], [("f.weight", "a.weight")])
    gain = [["b", "scale"], ["norm", "layer norm"], ["z", "scale"]]
    compare(grouped, gain, [("norm.weight", "b.scale")])
    compare(grouped, gain, [("norm.bias", "b.scale"), ("z.scale", "b.scale")])
    compare(grouped, [["a", "linear"], ["b", "scale"]], [("b.scale", "a.bias")])


def test_frozen(grouped, random):
    """What is at or below a frozen path is frozen and in no group; so is what was frozen before."""
    layers = [["layer1.a", "linear"], ["layer10", "linear"], ["layer1.b", "layer norm"]]
    layers += [["head", "conv"], ["headless", "scale"]]
    below = ["layer1.a.weight", "layer1.a.bias", "layer1.b.weight", "layer1.b.bias"]
    compare(grouped, layers, frozen=["layer1"], names_frozen=below)
    compare(grouped, layers, frozen=["layer1.a"], names_frozen=below[:2])
    compare(grouped, layers, frozen=["head.weight"], names_frozen=["head.weight"])
    compare(grouped, layers, beforehand=["layer10.weight"], frozen=[], names_frozen=[])
    both = ["head.weight", "head.bias", "layer1.b.bias"]
    paths = ["head", "layer1.b.bias"]
    compare(grouped, layers, beforehand=["headless.scale"], frozen=paths, names_frozen=both)
    head = ["head.weight", "head.bias"]
    compare(grouped, layers, beforehand=head, frozen=["head"], names_frozen=head)
    everything = [name for name, _ in assemble(layers).named_parameters()]
    compare(grouped, layers, frozen=[""], names_frozen=everything)
    tied = [["a", "no bias"], ["b", "no bias"], ["c", "=a"]]
    compare(grouped, tied, [("b.weight", "a.weight")], (), ["b"], ["a.weight"])
    compare(grouped, tied, frozen=["c"], names_frozen=["a.weight"])


def test_slips(grouped):
    """A path that leads to no parameter is a ValueError, and nothing is frozen."""
    layers = [["layer1", "linear"], ["relu", "relu"], ["layer10", "linear"]]
    for wrong in ("layer2", "relu", "layer1.weights", "layer", "layer1.weight.x", "weight"):
        for frozen in ([wrong], ["layer1", wrong], [wrong, "layer10"]):
            got = grouped.ask(layers, [], [], frozen, 0.25).value
            with about(*called(layers, frozen=frozen)):
                what = f"A ValueError was expected: {wrong!r} leads to no parameter."
                assert_holds(got["raised"] is not None, what)
                assert_equal(got["frozen"], [], "These were frozen nevertheless.")
