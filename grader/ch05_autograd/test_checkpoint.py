"""Checks of `checkpoint`: against a plain call of the same part, on the grader's side."""

import pytest
import torch

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
from grader.ch05_autograd.probes.checkpoints import Part, run_part

ROUNDING = "the same operations in float64"


@pytest.fixture
def weights(rng):
    return [torch.randn(4, 4, generator=rng, dtype=torch.float64) for _ in range(2)]


@pytest.fixture
def x(rng):
    return torch.randn(5, 4, generator=rng, dtype=torch.float64)


@pytest.fixture
def rate():
    return 0.0


@pytest.fixture
def repeat():
    return 1


@pytest.fixture
def form():
    return None


@pytest.fixture
def needs_grad():
    return True


@pytest.fixture
def backwards():
    return 1


def plain(part, *args, **kwargs):
    return part(*args, **kwargs)


RESULTS = {None: "h", "tuple": '(h, (h * 2).sum(), "text")', "dict": '{"h": h, "sum": h.sum()}'}
ARGUMENTS = {None: "x", "tuple": "(x,)", "dict": '{"x": (x, 3)}'}
TAKEN = {None: "x", "tuple": "x[0]", "dict": 'x["x"][0]'}


def as_text(rate, repeat, form, needs_grad):
    """Return the part that is checkpointed, and its call, as a program to paste."""
    dropout = f"\n        h = torch.nn.functional.dropout(h, {rate})" if rate else ""
    return (
        f"x = torch.randn(5, 4, requires_grad={needs_grad})\n"
        f"e = (x.detach()[:, :1] * 0.1).requires_grad_({needs_grad})\n"
        "w1, w2 = (torch.randn(4, 4, requires_grad=True) for _ in range(2))\n"
        "def part(x, repeat, *, options, extras):\n"
        f"    h = {TAKEN[form]}\n"
        "    for w in [w1, w2] * repeat:\n"
        f"        h = torch.sigmoid(h @ w){dropout}\n"
        "    for extra in extras:\n"
        "        h = h * extra.exp()\n"
        f"    return {RESULTS[form]}\n"
        f"checkpoint(part, {ARGUMENTS[form]}, {repeat}, options={form!r}, extras=[e, e + 1])"
    )


def compare(checkpointed, *inputs):
    got = checkpointed.ask(*inputs).value
    expected = run_part(plain, *inputs)
    with about(("program", as_text(*inputs[2:6]))):
        assert_equal(got["form"], expected["form"], "What is returned.")
        for number, (mine, theirs) in enumerate(
            zip(got["values"], expected["values"], strict=True), 1
        ):
            close(mine, theirs, f"Tensor number {number} that is returned")
        have, should = (
            [name for name, grad in zip(LEAVES, one["grads"], strict=True) if grad is not None]
            for one in (got, expected)
        )
        assert_equal(have, should, "The tensors that have a gradient after backward.")
        for name, mine, theirs in zip(LEAVES, got["grads"], expected["grads"], strict=True):
            if theirs is not None:
                close(mine, theirs, f"The gradient of `{name}`")
    return got, expected


LEAVES = ("w1", "w2", "x", "e")


def close(mine, theirs, what):
    with about(of=f"{what}: "):
        assert_close(mine, theirs, rtol=1e-9, atol=1e-9, because=ROUNDING)


@gate
def test_value(checkpointed, weights, x):
    """Returns what the function returns."""
    inputs = (weights, x, 0.0, 1, None, True, 0)
    got = checkpointed.ask(*inputs).value
    assert_equal(got["form"], "Tensor", "What is returned.")
    with about(("program", as_text(0.0, 1, None, True))):
        close(got["values"][0], run_part(plain, *inputs)["values"][0], "The result")


def test_gradients(checkpointed, weights, x):
    """Gradients of arguments and of the function's own parameters; the latter alone as well."""
    for repeat, needs_grad in ((1, True), (3, True), (2, False)):
        compare(checkpointed, weights, x, 0.0, repeat, None, needs_grad, 1)


def test_any_arguments(checkpointed, weights, x):
    """Tensors inside of tuples and dicts, keywords, results of any type."""
    for form in ("tuple", "dict"):
        for needs_grad in (True, False):
            compare(checkpointed, weights, x, 0.0, 2, form, needs_grad, 1)


def drawn(one):
    """Return what hangs on random numbers, in order of time, by name."""
    before, after_the_call, after_backward = one["random"]
    values = {f"Returned tensor {n}": value for n, value in enumerate(one["values"], 1)}
    grads = {f"The gradient of `{n}`": g for n, g in zip(LEAVES, one["grads"], strict=True)}
    return {
        "A number drawn before the call": before,
        **values,
        "A number drawn after the call": after_the_call,
        **grads,
        "A number drawn after backward": after_backward,
    }


def test_random_numbers(checkpointed, weights, x):
    """Dropout is the same in the second run, and the generator goes on as if there was none."""
    cases = [(0.25, 1, None, True), (0.25, 3, None, True), (0.25, 2, "dict", True)]
    found = [checkpointed.ask(weights, x, *case, 1).value for case in cases]
    both = [
        (drawn(got), drawn(run_part(plain, weights, x, *case, 1)))
        for case, got in zip(cases, found, strict=True)
    ]
    same = [
        {name: near(got.get(name), value) for name, value in expected.items()}
        for got, expected in both
    ]
    compared(same)  # which of them are right, and not the numbers: those may come from any seed
    for case, right, (got, expected) in zip(cases, same, both, strict=True):
        wrong = [name for name, is_right in right.items() if not is_right]
        if wrong:
            rows = [("program", as_text(*case))]
            mine = got.get(wrong[0])
            rows.append(("expected", first_of(expected[wrong[0]])))
            rows.append(("got", first_of(mine)))
            raise Mismatch(f"{wrong[0]} is not that of a plain call.", tuple(rows))


def near(mine, theirs):
    return (
        isinstance(mine, torch.Tensor)
        and mine.shape == theirs.shape
        and mine.dtype == theirs.dtype
        and torch.allclose(mine, theirs, 1e-9, 1e-9)
    )


def first_of(tensor):
    """Return a tensor's first number as text, and how many there are."""
    if not isinstance(tensor, torch.Tensor) or not tensor.numel():
        return repr(tensor)
    more = f", the first of {tensor.numel()}" if tensor.numel() > 1 else ""
    return f"{float(tensor.detach().reshape(-1)[0]):.9g}{more}"


def test_runs(checkpointed, checkpoint_without_grad, weights, x):
    """Once in forward, once for each backward pass; under `no_grad` once, without a graph."""
    for backwards in (1, 2, 3):
        inputs = (weights, x, 0.25, 2, "tuple", True, backwards)
        got, _ = compare(checkpointed, *inputs)
        with about(("program", as_text(*inputs[2:6])), ("backward passes", str(backwards))):
            what = "How often the function has run: after the call, after each backward pass."
            assert_equal(got["calls"], list(range(1, backwards + 2)), what)
            assert_holds(all(got["modes"]), "The function ran with grad mode off.")
    got = checkpoint_without_grad.ask(weights, x).value
    with about(("program", f"{as_text(0.0, 1, None, False)}  # under torch.no_grad()")):
        close(got["y"], Part(weights, 0.0)(x).detach(), "The result")
        assert_equal(got["calls"], 1, "How often the function has run.")


def test_in_parts(checkpoint_in_parts, weights, x):
    """Two parts in a row, and gradients of single tensors: no other `.grad` is touched."""
    got = checkpoint_in_parts.ask(weights, x).value
    one, two = Part(weights, 0.0), Part(weights, 0.25)
    x = x.clone().requires_grad_()
    torch.default_generator.manual_seed(11)
    h = two(one(x))
    wanted = torch.autograd.grad(h.sum(), (two.weights[-1], x, one.weights[0]))
    program = (
        "h = checkpoint(two, checkpoint(one, x))\n"
        "torch.autograd.grad(h.sum(), last_weight_of_two, retain_graph=True)\n"
        "torch.autograd.grad(h.sum(), (x, first_weight_of_one))"
    )
    with about(("program", program)):
        names = ("last_weight_of_two", "x", "first_weight_of_one")
        for name, mine, theirs in zip(names, got["one by one"], wanted, strict=True):
            close(mine, theirs, f"The gradient of `{name}`")
        assert_holds(not any(got["touched"]), "A `.grad` was filled that nobody asked for.")


@claimed
@points(4)
def test_keeps_nothing(checkpoint_keeps, weights, x):
    """Between forward and backward no tensor that was computed inside is alive."""
    got = checkpoint_keeps.ask(weights, x).value
    with about(("program", as_text(0.25, 3, None, True))):
        what = "The bytes that nodes saved between forward and backward, without inputs and parameters."
        assert_equal(got["saved"], 0, what)
        # the part's own result is a tensor that was computed inside; the loss may keep it
        what = "How many of the tensors computed inside are alive between forward and backward."
        assert_equal(max(got["alive"], 1), 1, what)
        assert_equal(got["calls"], 2, "How often the function has run in all.")
        what = "How many of them are alive when the result was dropped without a backward."
        assert_equal(got["dropped"], 0, what)
