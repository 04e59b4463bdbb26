"""Checks of `evaluating`: modes, recording and buffers, inside and afterwards."""

import pytest
import torch

from grader import about, assert_close, assert_equal, assert_holds, compared, facts, points
from grader.ch05_autograd.probes.evaluation import buffers_of, build_model

MODES = "The modules that are in training mode afterwards."


@pytest.fixture
def weight(rng):
    return torch.randn(3, 3, generator=rng)


@pytest.fixture
def x(rng):
    return torch.randn(6, 3, generator=rng)


@pytest.fixture
def outer():
    return True


@pytest.fixture
def meddle():
    return False


@pytest.fixture
def fails():
    return False


def test_a_context_manager(evaluated):
    """`with evaluating(model) as same:` gives the model itself."""
    assert_holds(evaluated.value["seen"]["same"], "What `as` gives is not the model itself.")


def test_eval_mode(evaluated, weight, x):
    """Inside, every module is in eval mode, and results are those of use."""
    seen = evaluated.value["seen"]
    assert_holds(not any(seen["modes"]), "A module is in training mode inside of the `with`.")
    model = build_model(weight)
    before = evaluated.value["before"]["buffers"]
    for name, buffer in buffers_of(model).items():
        if buffer is not None:
            buffer.copy_(before[name])
    expected = model.eval()(x).detach()
    for which, got in (("first", seen["y"]), ("second", seen["again"])):
        with about(of=f"What the {which} call of the model gives inside: "):
            assert_close(got, expected, rtol=1e-5, atol=1e-6, because="float32 sums of three")


def test_not_recorded(evaluated, weight, x):
    """Inside, nothing is recorded; results are ordinary tensors. Afterwards grad mode is as before."""
    for outer in (True, False):
        got = evaluated.ask(weight, x, outer, False, False).value
        assert_equal(got["seen"]["grad mode"], False, "Grad mode inside.")
        y = facts(got["seen"]["y"])
        assert_holds(not y.requires_grad, "A result that is made inside requires grad.")
        inference = "A result that is made inside is an inference tensor, with no version counter."
        assert_holds(y.version is not None, inference)
        assert_equal(got["grad mode"], outer, f"Grad mode afterwards; before, it was {outer}.")
        assert_equal(got["requires grad"], [True] * 5, "Which parameters require grad afterwards.")


def same_modes(got, weight):
    """Compare which modules are in training mode with before, by name; "" is the model itself."""
    names = [name for name, _ in build_model(weight).named_modules()]
    after, before = (
        [name for name, training in zip(names, got[when]["modes"], strict=True) if training]
        for when in ("after", "before")
    )
    assert_equal(after, before, MODES)


def test_modes(evaluated, weight, x):
    """Afterwards each module has the mode and the attributes that it had."""
    for meddle in (False, True):
        got = evaluated.ask(weight, x, True, meddle, False).value
        same_modes(got, weight)
        what = "Attributes of the modules."
        assert_equal(got["after"]["attributes"], got["before"]["attributes"], what)


def same_buffers(got):
    before, after = got["before"]["buffers"], got["after"]["buffers"]
    compared([None if one is None else one.tolist() for one in after.values()])
    for name, one in before.items():
        now = after.get(name)
        content = None if now is None else now.tolist()
        wanted = None if one is None else one.tolist()
        assert_equal(content, wanted, f"The content of the buffer `{name}`.")
    what = "The buffers that are other tensors than before, or none."
    assert_equal(got["other tensors"], [], what)


@points(3)
def test_buffers(evaluated, weight, x):
    """Afterwards each buffer is the same tensor with the same content."""
    same_buffers(evaluated.ask(weight, x, True, False, False).value)


def test_meddling(evaluated, weight, x):
    """The same when the body switched layers to training, replaced a buffer and filled an empty one."""
    for outer in (True, False):
        got = evaluated.ask(weight, x, outer, True, False).value
        same_buffers(got)
        assert_equal(got["grad mode"], outer, f"Grad mode afterwards; before, it was {outer}.")


def test_errors(evaluated, weight, x):
    """The same when the body raised; its error goes on."""
    for meddle in (False, True):
        got = evaluated.ask(weight, x, True, meddle, True).value
        assert_equal(got["error"], "the body's own", "The error that came out.")
        same_modes(got, weight)
        assert_equal(got["grad mode"], True, "Grad mode afterwards.")
        same_buffers(got)
