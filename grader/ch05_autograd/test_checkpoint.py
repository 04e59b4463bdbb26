"""Checks of `checkpoint`: against a plain call of the same part, on the grader's side."""

import pytest
import torch

from grader import assert_close, assert_equal, assert_holds, claimed, gate
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


def compare(checkpointed, *inputs):
    got = checkpointed.ask(*inputs).value
    expected = run_part(plain, *inputs)
    rate, repeat, form, needs_grad = inputs[2:6]
    case = f"dropout {rate}, repeat {repeat}, form {form}, inputs require grad: {needs_grad}. "
    assert_equal(got["form"], expected["form"], case + "What is returned.")
    for mine, theirs in zip(got["values"], expected["values"], strict=True):
        close(mine, theirs)
    have = [[g is not None for g in one["grads"]] for one in (got, expected)]
    assert_equal(*have, case + "Which of weights and inputs have a gradient.")
    for mine, theirs in zip(got["grads"], expected["grads"], strict=True):
        if theirs is not None:
            close(mine, theirs)
    return got, expected


def close(mine, theirs):
    assert_close(mine, theirs, rtol=1e-9, atol=1e-9, because=ROUNDING)


@gate
def test_value(checkpointed, weights, x):
    """Returns what the function returns."""
    inputs = (weights, x, 0.0, 1, None, True, 0)
    got = checkpointed.ask(*inputs).value
    assert_equal(got["form"], "Tensor", "What is returned.")
    close(got["values"][0], run_part(plain, *inputs)["values"][0])


def test_gradients(checkpointed, weights, x):
    """Gradients of arguments and of the function's own parameters; the latter alone as well."""
    for repeat, needs_grad in ((1, True), (3, True), (2, False)):
        compare(checkpointed, weights, x, 0.0, repeat, None, needs_grad, 1)


def test_any_arguments(checkpointed, weights, x):
    """Tensors inside of tuples and dicts, keywords, results of any type."""
    for form in ("tuple", "dict"):
        for needs_grad in (True, False):
            compare(checkpointed, weights, x, 0.0, 2, form, needs_grad, 1)


def test_random_numbers(checkpointed, weights, x):
    """Dropout is the same in the second run, and the generator goes on as if there was none."""
    for repeat, form in ((1, None), (3, None), (2, "dict")):
        got, expected = compare(checkpointed, weights, x, 0.25, repeat, form, True, 1)
        for name, mine, theirs in zip(
            ("before", "after forward", "after backward"),
            got["random"],
            expected["random"],
            strict=True,
        ):
            assert_equal(mine.tolist(), theirs.tolist(), f"A random number drawn {name}.")


def test_runs(checkpointed, checkpoint_without_grad, weights, x):
    """Once in forward, once for each backward pass; under `no_grad` once, without a graph."""
    for backwards in (1, 2, 3):
        inputs = (weights, x, 0.25, 2, "tuple", True, backwards)
        got, _ = compare(checkpointed, *inputs)
        assert_equal(got["calls"], list(range(1, backwards + 2)), "Runs after each pass.")
        assert_holds(all(got["modes"]), "The function ran without grad mode.")
    got = checkpoint_without_grad.ask(weights, x).value
    close(got["y"], Part(weights, 0.0)(x).detach())
    assert_equal(got["calls"], 1, "Runs under `no_grad`.")


def test_in_parts(checkpoint_in_parts, weights, x):
    """Two parts in a row, and gradients of single tensors: no other `.grad` is touched."""
    got = checkpoint_in_parts.ask(weights, x).value
    one, two = Part(weights, 0.0), Part(weights, 0.25)
    x = x.clone().requires_grad_()
    torch.default_generator.manual_seed(11)
    h = two(one(x))
    wanted = torch.autograd.grad(h.sum(), (two.weights[-1], x, one.weights[0]))
    for mine, theirs in zip(got["one by one"], wanted, strict=True):
        close(mine, theirs)
    assert_holds(not any(got["touched"]), "A `.grad` was filled that nobody asked for.")


@claimed
def test_keeps_nothing(checkpoint_keeps, weights, x):
    """Between forward and backward no tensor that was computed inside is alive."""
    got = checkpoint_keeps.ask(weights, x).value
    assert_equal(got["saved"], 0, "Bytes that nodes saved, inputs and parameters aside.")
    # the part's own result is a tensor that was computed inside; the loss may keep it
    assert_equal(max(got["alive"], 1), 1, "Tensors of the part that are alive.")
    assert_equal(got["calls"], 2, "Runs in all.")
    what = "Tensors of the part that are alive when its result was dropped without a backward."
    assert_equal(got["dropped"], 0, what)
