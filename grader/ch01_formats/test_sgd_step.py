"""Checks of `sgd_step`: where many small steps lead, and what is carried from one to the next."""

from itertools import product

import pytest
import torch

from grader import Mismatch, assert_close, assert_same_bits, assert_tensor, gate, points

STATE_BYTES = 4
STEP = 2.0**-7
"""Distance of two bfloat16 numbers in [1, 2)."""

LR = 1e-3


@pytest.fixture
def weight(rng):
    """64 weights in the middle of [1, 2), where all steps of bfloat16 are the same."""
    return (1.35 + 0.3 * torch.rand(64, generator=rng)).to(torch.bfloat16)


@pytest.fixture
def grads(rng):
    """200 gradients per weight, each worth less than half a step: 5 to 26 steps in all."""
    size = 0.2 + 0.8 * torch.rand(200, 64, generator=rng)
    sign = torch.where(torch.arange(64) % 2 == 0, 1.0, -1.0)
    return (size * sign).to(torch.bfloat16)


def expected(weight, grads, lr):
    return (weight.double() - lr * grads.double().sum(0)).float()


def compare(result, weight, grads, lr, step=STEP):
    """Fail unless the weights are within one step of the exact sum.

    Half a step for storing the result. A compensation buffer in bfloat16 rounds what is owed, at
    most half a step, to 8 bits: 2**-10 steps per call, 0.2 after 200; and `lr * grad` to 8 bits:
    2**-9 of the way, 0.12 after 60 steps.
    """
    got, right = result["weight"], expected(weight, grads, lr)
    assert_tensor(got, dtype=torch.bfloat16, shape=weight.shape)
    try:
        assert_close(got.float(), right, rtol=0.0, atol=step, because="one step of bfloat16 there")
    except Mismatch:
        off = ((got.float() - right).abs() / step).nan_to_num(torch.inf).reshape(-1)
        where = int(off.argmax())
        rows = (
            ("calls", f"{len(grads)} of sgd_step(weight, grad, {lr}, state)"),
            ("weight at first", f"{float(weight.reshape(-1)[where]):.9g}"),
            ("lr * sum of grads", f"{float(lr * grads.double().sum(0).reshape(-1)[where]):.9g}"),
            ("expected", f"{float(right.reshape(-1)[where]):.9g}, within one step of {step:g}"),
            ("got", f"{float(got.reshape(-1)[where]):.9g}, {float(off[where]):.3g} steps off"),
        )
        count = int((off > 1).sum())
        raise Mismatch(
            f"{count} of {off.numel()} weights are too far off. The worst:", rows
        ) from None


@gate
def test_weight_and_state(sgd_trained, weight, grads):
    """The weight stays `bfloat16`; the state is None or one tensor of at most 4 bytes a weight."""
    for shape in ((64,), (4, 16)):
        start, steps = weight.reshape(shape), grads[:3].reshape(3, *shape)
        result = sgd_trained.ask(start, steps, LR).value
        assert_tensor(result["weight"], dtype=torch.bfloat16, shape=start.shape)
        check_state(result["state"], start.shape)


def check_state(state, shape):
    if state is None:
        return
    if not isinstance(state, torch.Tensor):
        kind = type(state).__name__
        raise Mismatch(f"The state must be None or one tensor; you returned a {kind}.")
    assert_tensor(state, shape=shape)
    if state.element_size() > STATE_BYTES:
        got = f"{state.element_size()} ({state.dtype})"
        raise Mismatch(
            "The state takes more than four bytes per weight.",
            (("expected", f"at most {STATE_BYTES} bytes"), ("got", got)),
        )


@points(3)
def test_small_steps_add_up(sgd_trained, weight, grads):
    """200 steps, each far below the resolution of `bfloat16`, move the weight by their sum."""
    compare(sgd_trained.ask(weight, grads, LR).value, weight, grads, LR)


def test_back_and_forth(sgd_trained, weight, rng):
    """Gradients of changing sign: what they leave over counts, and nothing else."""
    noise = torch.randn(200, 64, generator=rng).clamp(-2, 2)
    drift = torch.where(torch.arange(64) % 2 == 0, 0.6, -0.6)
    grads = (noise + drift).to(torch.bfloat16)
    compare(sgd_trained.ask(weight, grads, LR).value, weight, grads, LR)


def test_large_steps(sgd_trained, weight, grads):
    """A step that `bfloat16` can see is an ordinary step of gradient descent, for any shape."""
    for lr in (0.05, 0.25):
        compare(sgd_trained.ask(weight, grads[:1], lr).value, weight, grads[:1], lr)
    for shape in ((4, 2, 8), (), (0, 3)):
        count = torch.Size(shape).numel()
        start, step = weight[:count].reshape(shape), grads[:1, :count].reshape(1, *shape)
        result = sgd_trained.ask(start, step, 0.25).value
        compare(result, start, step, 0.25)
        check_state(result["state"], start.shape)


def test_magnitudes(sgd_trained, weight, grads):
    """Weights from a millionth to a million, of either sign, learn as well."""
    for exponent, sign in ((-20, 1), (-20, -1), (20, 1), (20, -1)):
        scale = 2.0**exponent
        start, steps = weight * (sign * scale), grads[:100] * scale
        compare(sgd_trained.ask(start, steps, LR).value, start, steps, LR, STEP * scale)


def test_through_a_power_of_two(sgd_trained, rng):
    """A weight that comes down from 1.4 to 0.75: within one step still, and there it is half as wide."""
    weight = (1.3 + 0.15 * torch.rand(64, generator=rng)).to(torch.bfloat16)
    # each update is a third to a half of a step: a copy that is made after the first one lacks that
    grads = (2.4 + 1.4 * torch.rand(200, 64, generator=rng)).to(torch.bfloat16)
    compare(sgd_trained.ask(weight, grads, LR).value, weight, grads, LR, STEP / 2)


def test_goes_on_from_its_state(sgd_trained, sgd_trained_apart, sgd_resumed, weight, grads):
    """A run that stops and goes on from weight and state ends where an unbroken one ends."""
    for stop, end in ((77, 200), (1, 2)):
        straight = sgd_trained.ask(weight, grads[:end], LR).value
        first = sgd_trained_apart.ask(weight, grads[:stop], LR).value
        sgd_trained.ask(weight.flip(0), grads[:50].flip(1), LR)  # another weight in between
        second = sgd_resumed.ask(first["weight"], first["state"], grads[stop:end], LR).value
        compare(second, weight, grads[:end], LR)
        assert_same_bits(second["weight"], straight["weight"])


def test_in_place(sgd_in_place, weight, grads):
    """Writes into the weight's own memory, whatever its layout, and nowhere else."""
    transposed, strided = weight.reshape(8, 8).clone(), weight.clone()
    views = [(transposed, transposed[1:7, 2:].t()), (strided, strided[3::4])]
    for (memory, view), (count, lr) in product(views, ((200, LR), (1, 0.25))):
        steps = grads[:count, : view.numel()].reshape(count, *view.shape)
        evidence = sgd_in_place.ask(memory, view, steps, lr)
        assert evidence.value is None
        after = evidence.inputs_after
        compare({"weight": after["weight"]}, view, steps, lr)
        around = memory.clone()
        around.as_strided(view.shape, view.stride(), view.storage_offset()).copy_(after["weight"])
        assert_same_bits(after["memory"], around)
