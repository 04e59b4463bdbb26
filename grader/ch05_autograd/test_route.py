"""Checks of `route`: which parameters got a gradient, which gradient, and what was put back."""

import pytest
import torch
from torch import nn
from torch.func import functional_call

from grader import about, assert_close, assert_equal, assert_holds, gate, points
from grader.ch05_autograd.probes.routes import as_text, build_layers, names_of

ROUNDING = "the same sums in float64, in another order"


@pytest.fixture
def kinds():
    return ["linear", "tanh", "linear", "tanh", "linear"]


@pytest.fixture
def numbers(rng, kinds):
    return torch.randn(len(kinds), 5, 4, generator=rng, dtype=torch.float64)


@pytest.fixture
def x(rng):
    return torch.randn(3, 4, generator=rng, dtype=torch.float64)


@pytest.fixture
def cotangent(rng):
    return torch.randn(3, 4, generator=rng, dtype=torch.float64)


@pytest.fixture
def frozen():
    return []


@pytest.fixture
def cut():
    return []


def expected(kinds, numbers, x, cotangent, frozen, cut):
    """Return the same by another road: frozen layers run on copies of their parameters."""
    layers = build_layers(kinds, numbers)
    parameters = list(nn.ModuleList(layers).parameters())
    x = h = x.clone().requires_grad_()
    for position, layer in enumerate(layers):
        h = h.detach() if position in cut else h
        if position in frozen:
            # buffers as they are: a BatchNorm must count this use
            copies = {name: p.detach() for name, p in layer.named_parameters()}
            h = functional_call(layer, copies, h)
        else:
            h = layer(h)
    if h.requires_grad:
        h.backward(cotangent)
    return h.detach(), [p.grad for p in parameters], x.grad


def compare(routed, kinds, numbers, x, cotangent, frozen, cut):
    got = routed.ask(kinds, numbers, x, cotangent, sorted(frozen), sorted(cut)).value
    y, grads, x_grad = expected(kinds, numbers, x, cotangent, frozen, cut)
    names = [*names_of(build_layers(kinds, numbers)), "x"]
    mine, theirs = [*got["grads"], got["x"]], [*grads, x_grad]
    with about(("program", as_text(kinds, frozen, cut))):
        with about(of="The result: "):
            assert_close(got["y"], y, rtol=1e-12, atol=1e-12, because=ROUNDING)
        have, should = (
            [name for name, grad in zip(names, all_grads, strict=True) if grad is not None]
            for all_grads in (mine, theirs)
        )
        assert_equal(have, should, "What has a gradient after `backward`.")
        assert_holds(got["x requires grad"], "`x` does not require grad any more.")
        for name, one, other in zip(names, mine, theirs, strict=True):
            if other is not None:
                with about(of=f"The gradient of `{name}`: "):
                    assert_close(one, other, rtol=1e-10, atol=1e-10, because=ROUNDING)
    return got


def same_flags(got, kinds, numbers, frozen):
    """Compare every parameter's `requires_grad` with what it was before the call."""
    names = names_of(build_layers(kinds, numbers))
    after, before = (
        [name for name, flag in zip(names, flags, strict=True) if flag]
        for flags in reversed(got["flags"])
    )
    with about(("program", as_text(kinds, frozen, set()))):
        assert_equal(after, before, "The parameters that require grad afterwards.")


@gate
def test_plain(routed, kinds, numbers, x, cotangent):
    """With nothing frozen and nothing cut: the plain forward pass and its gradients."""
    compare(routed, kinds, numbers, x, cotangent, set(), set())


def test_frozen(routed, kinds, numbers, x, cotangent):
    """Frozen layers get no gradient, nor do layers inside of them, and hand it on to what lies before."""
    for frozen in ({2}, {0}, {4}, {0, 2}, {1}, {0, 2, 4}):
        compare(routed, kinds, numbers, x, cotangent, frozen, set())
    blocks = ["linear", "block", "tanh", "block", "linear"]
    compare(routed, blocks, numbers, x, cotangent, {1, 3}, set())


def test_cut(routed, kinds, numbers, x, cotangent):
    """No gradient passes a cut; the layer behind it keeps its own, and `x` stays as it is."""
    for cut in ({2}, {0}, {4}, {1}, {2, 4}):
        compare(routed, kinds, numbers, x, cotangent, set(), cut)
    same = ["same", "linear", "tanh", "linear", "linear"]
    compare(routed, same, numbers, x, cotangent, set(), {1})


@points(3)
def test_both(routed, kinds, numbers, x, cotangent):
    """Frozen and cut in any combination, at the same position too."""
    for frozen, cut in (({2}, {4}), ({4}, {2}), ({2}, {2}), ({0, 4}, {0}), ({0, 2, 4}, {0})):
        compare(routed, kinds, numbers, x, cotangent, frozen, cut)


def test_used_again(routed, numbers, x, cotangent):
    """A layer, or a weight, that is used twice and frozen once; the layers themselves run, once."""
    for kinds, frozen, cut in (
        (["linear", "tanh", 0, "tanh", "linear"], {0}, set()),
        (["linear", "tanh", 0, "tanh", "linear"], {2}, set()),
        (["linear", "tanh", "tied", "tanh", "linear"], {2}, set()),
        (["linear", "tanh", "tied", "tanh", 2], {0, 4}, set()),
        (["linear", "norm", 0, 1, "linear"], {1}, {3}),
    ):
        got = compare(routed, kinds, numbers, x, cotangent, frozen, cut)
        wanted = [
            kinds.count(at) + 1 if not isinstance(k, int) else 0 for at, k in enumerate(kinds)
        ]
        program = ("program", as_text(kinds, frozen, cut))
        with about(program):
            assert_equal(
                got["calls"], wanted, "How often each layer ran, by position of its first."
            )
        layers, h = build_layers(kinds, numbers), x
        for layer in layers:
            h = layer(h)
        for mine, theirs in zip(got["buffers"], nn.ModuleList(layers).buffers(), strict=True):
            # it was the layer itself that ran
            with about(program, of="A buffer of the BatchNorm: "):
                assert_close(mine, theirs, rtol=1e-10, atol=1e-10, because=ROUNDING)


def test_flags(routed, kinds, numbers, x, cotangent):
    """Afterwards every parameter requires grad if it did before, and only then."""
    for kinds_, frozen in (
        (kinds, {0, 2, 4}),
        (["linear", "tanh", "fixed", "tanh", "linear"], {2, 4}),
        (["fixed", "tanh", "tied", "tanh", 0], {0, 2}),
    ):
        got = compare(routed, kinds_, numbers, x, cotangent, frozen, set())
        same_flags(got, kinds_, numbers, frozen)


def test_errors(routed, numbers, x, cotangent):
    """A layer that raises: its error comes out, and every `requires_grad` is as before."""
    for kinds, frozen in (
        (["linear", "tanh", "fails", "tanh", "linear"], [0, 2, 4]),
        (["fixed", "tanh", "fails", "tanh", "linear"], [0, 2]),
    ):
        got = routed.ask(kinds, numbers, x, cotangent, frozen, []).value
        with about(("program", as_text(kinds, frozen, set()))):
            assert_equal(got["raised"], "this layer fails", "The words of the error that came out.")
        same_flags(got, kinds, numbers, frozen)
