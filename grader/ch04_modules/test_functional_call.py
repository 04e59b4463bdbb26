"""Checks of `functional_call`: values, gradients, ties, errors, and the module afterwards."""

import pytest
import torch

from grader import about, assert_close, assert_equal, assert_holds, gate, points
from grader.ch04_modules.probes.functional import Tied

BECAUSE = "order of float sums"
NAMES = ("first.weight", "first.bias", "shared.0.weight", "tied.bias", "pair.a", "pair.b")
ALIASES = {
    "first.weight": "tied.weight",
    "shared.0.weight": "again.0.weight",
    "pair.a": "pairs.0.a",
    "pair.b": "pairs.0.b",
}


@pytest.fixture
def x(rng):
    """float32 (4, 3)."""
    return torch.randn(4, 3, generator=rng)


@pytest.fixture
def tensors(rng):
    """Other values for every parameter of the model, by first names."""
    shapes = {name: p.shape for name, p in Tied().named_parameters()}
    return {name: torch.randn(shapes[name], generator=rng) for name in NAMES}


def expected_of(tensors, x, **call):
    """Return what torch's own functional_call gives."""
    return torch.func.functional_call(Tied(), tensors, (x,), call).detach()


def compare(called, tensors, x, options=None, same=(), **call):
    got = called.ask(tensors, x, options or {}, call, list(same)).value
    names = list(dict.fromkeys([*tensors, *(other for _, other in same)]))
    with about(*given(names, options or {}), *said(got)):
        assert_equal(got["error"], None, "An error came instead of a result.")
        expected = expected_of({n: t.clone() for n, t in tensors.items()}, x, **call)
        assert_close(got["result"], expected, rtol=1e-4, atol=1e-5, because=BECAUSE)
        assert_untouched(got)
        assert_equal(got["names given"], names, "The dictionary of tensors has changed.")
    return got


def given(names, options):
    """Return the rows that say what `functional_call` was given."""
    rows = [("given", ", ".join(repr(name) for name in names) or "nothing")]
    return rows + [(name, repr(value)) for name, value in options.items()]


def said(got):
    """Return a row with the words of an error, if there is one."""
    return [("the error", got["words"])] if got["words"] else []


def assert_untouched(got, what="Afterwards the module is not as it was."):
    assert_holds(not got["changed"], what, ("changed", "; ".join(got["changed"])))


def assert_refused(called, tensors, x, kind, **options):
    got = called.ask(tensors, x, options, {}, []).value
    with about(*given(tensors, options), *said(got)):
        assert_equal(got["error"] or "no error", kind, f"Expected a {kind}.")
        assert_untouched(got, "The module was changed.")
        assert_holds(got["calls"] == 0, "The module was called.")


@gate
def test_a_layer(called_on, x, rng):
    """Calls a layer with another weight; arguments may be missing."""
    weight = torch.randn(2, 3, generator=rng)
    got = called_on.ask(weight, x).value
    assert_close(got["layer"], x @ weight.t(), rtol=1e-4, atol=1e-5, because=BECAUSE)
    assert_close(got["bare"], 3 * weight[0], rtol=1e-6, atol=0, because="one rounding")
    said = "`functional_call(module, {})`, without arguments, for 3 times a parameter of ones."
    assert_equal(got["nothing"].tolist(), [3.0, 3.0], said)


def test_values(called, tensors, x):
    """Any part of the parameters and buffers is replaced, the rest stays; keywords are passed."""
    compare(called, tensors, x)
    compare(called, tensors, x, scale=3.0)
    for name in NAMES:
        compare(called, {name: tensors[name]}, x)
    compare(called, {"count": torch.tensor(5.0), "pair.a": tensors["pair.a"]}, x)


def test_gradients(called_gradients, tensors, x):
    """Gradients flow to the given tensors and to nothing that they replace."""
    got = called_gradients.ask(tensors, x).value
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in tensors.items()}
    torch.func.functional_call(Tied(), leaves, (x,)).square().sum().backward()
    assert_equal(got["own"], [], "These parameters of the module have a gradient.")
    lacking = [name for name, grad in got["grads"].items() if grad is None]
    assert_equal(lacking, [], "No gradient reached these of the given tensors.")
    for name, leaf in leaves.items():
        assert_close(got["grads"][name], leaf.grad, rtol=1e-3, atol=1e-4, because=BECAUSE)


@points(3.5)
def test_ties(called, called_views, tensors, x):
    """Any name of a tied or shared tensor stands for all; two tensors for one are a ValueError."""
    views = called_views.ask(torch.tensor([2.0, 3.0])).value
    said = "Two parameters in the same memory are two, and so are two that are empty."
    assert_equal((views["found"].tolist(), len(views["empty"])), ([12.0, 13.0], 0), said)
    for first, other in ALIASES.items():
        compare(called, {other: tensors[first]}, x)
        compare(called, {first: tensors[first]}, x, same=[(first, other)])
        compare(called, {other: tensors[first]}, x, {"strict": False}, [(other, first)])
        # equal values do not make two tensors one: a gradient would reach one of them
        for second in (tensors[first] + 1, tensors[first].clone()):
            assert_refused(called, {**tensors, other: second}, x, "ValueError")


def test_names(called, tensors, x):
    """Names that do not exist, and with `strict` those that are missing, are a RuntimeError."""
    slips = ("weight", "first", "first.weights", "first.weight.x", "shared.1.weight", "")
    for wrong in (*slips, "shared.0.bias"):  # which is None
        assert_refused(called, {**tensors, wrong: torch.zeros(3)}, x, "RuntimeError")
    everything = {**tensors, "count": torch.zeros(()), "total": torch.zeros(())}
    compare(called, everything, x, {"strict": True})
    other = {ALIASES.get(name, name): tensor for name, tensor in everything.items()}
    compare(called, other, x, {"strict": True})
    for name in everything:
        part = {key: tensor for key, tensor in everything.items() if key != name}
        assert_refused(called, part, x, "RuntimeError", strict=True)


def test_error(called, tensors, x):
    """After an error in `forward` every registry holds the same objects in the same order."""
    for some in (tensors, {"tied.weight": tensors["first.weight"]}, {}):
        got = called.ask(some, x, {}, {"fail": True}, []).value
        error = got["error"] or "no error"
        with about(*given(some, {}), *said(got)):
            assert_equal(error, "LookupError", "The error did not reach the caller.")
            assert_untouched(got)
            assert_equal(got["calls"], 1, "The module itself was to be called, once.")


def test_itself(called, tensors, x):
    """The module itself runs: hooks, counters, and changes in place, where they belong."""
    got = compare(called, tensors, x)
    assert_equal((got["calls"], got["hooked"]), (1, ["first", "model"]), "Calls and hooks differ.")
    assert_close(got["total"], x.sum(), rtol=1e-4, atol=1e-4, because=BECAUSE)
    assert_equal(got["count"].item(), 1.0, "A buffer that was not given has its own count.")
    evidence = called.ask({"count": torch.tensor(7.0)}, x, {}, {}, [])
    assert_equal(evidence.value["count"].item(), 0.0, "A buffer was given: the own stays.")
    after = evidence.inputs_after["tensors"]["count"]
    assert_equal(after.item(), 8.0, "The given buffer was to be changed in place.")


def test_swapped(called_swapped, x):
    """Two of the module's own parameters change places for one call."""
    for names in (
        ["pair.a", "pair.b"],
        ["pairs.0.a", "pair.b"],
        ["first.weight", "again.0.weight"],
    ):
        model = Tied()
        one, other = (model.get_parameter(name).detach().clone() for name in names)
        got = called_swapped.ask(x, names).value
        expected = expected_of({names[0]: other, names[1]: one}, x)
        with about(("given", f"{names[0]!r} and {names[1]!r}, each for the other")):
            assert_close(got["result"], expected, rtol=1e-4, atol=1e-5, because=BECAUSE)
            assert_untouched(got)


def test_transforms(called_transforms, rng, x):
    """Works under `vmap`, `grad` and `jvp`."""
    shapes = {"0.weight": (5, 2, 3), "0.bias": (5, 2)}
    tensors = {name: torch.randn(shape, generator=rng) for name, shape in shapes.items()}
    got = called_transforms.ask(tensors, x).value
    weight, bias = tensors["0.weight"], tensors["0.bias"]
    ensemble = torch.einsum("nf,eof->eno", x, weight).add(bias[:, None]).tanh()
    assert_close(got["ensemble"], ensemble, rtol=1e-4, atol=1e-5, because=BECAUSE)

    def loss(weight, bias):
        return (x @ weight.t() + bias).tanh().square().sum()

    point = weight[0], bias[0]
    ones = tuple(torch.ones_like(tensor) for tensor in point)
    _, curvature = torch.autograd.functional.hvp(loss, point, ones)
    for name, expected in zip(shapes, curvature, strict=True):
        assert_close(got["curvature"][name], expected, rtol=1e-3, atol=1e-3, because=BECAUSE)
