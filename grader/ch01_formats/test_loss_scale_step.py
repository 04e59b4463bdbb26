"""Checks of `loss_scale_step`: what becomes of gradients, and of the scale, in every situation."""

import pytest
import torch

from grader import Mismatch, assert_close, assert_equal, assert_same_bits, assert_tensor, gate

GOOD = torch.tensor([0.5, -2.0], dtype=torch.float16)
BAD = torch.tensor([0.5, float("inf")], dtype=torch.float16)


@pytest.fixture
def grads(rng):
    """Gradients of several shapes and layouts, all finite."""
    x = torch.randn(60, generator=rng).half()
    return [x[:12].reshape(3, 4).t(), x[12:48:5], x[50], x[:0].reshape(0, 2), x[51:52].expand(2, 2)]


@pytest.fixture
def factors(parameters):
    """What the scale is multiplied by: after good steps, and after an overflow."""
    return float(parameters["grow"]), 1 / parameters["shrink"]


@gate
def test_returns_three(loss_scale_stepped, grads):
    """Returns gradients or None, a `float` and an `int`; leaves the gradients alone."""
    for given in (grads, [BAD], [GOOD, BAD]):
        evidence = loss_scale_stepped.ask(given, 1024.0, 1, 5)
        got = evidence.value
        if got is None:
            raise Mismatch("`loss_scale_step` returned None. Did you forget a `return`?")
        if not isinstance(got, list | tuple) or len(got) != 3:
            raise Mismatch("`loss_scale_step` did not return three things.")
        unscaled, scale, streak = got
        if type(scale) is not float or type(streak) is not int:
            raise Mismatch(
                "The scale must be a float, and the streak an int.",
                (("got", f"{type(scale).__name__} and {type(streak).__name__}"),),
            )
        if unscaled is not None:
            if not isinstance(unscaled, list | tuple) or len(unscaled) != len(given):
                raise Mismatch("There must be one unscaled gradient for each gradient.")
            for mine, grad in zip(unscaled, given, strict=True):
                assert_tensor(mine, dtype=torch.float32, shape=grad.shape)
        for before, after in zip(given, evidence.inputs_after["grads"], strict=True):
            if not torch.equal(before, after):
                raise Mismatch("Your code changed a gradient in place. Build a new tensor.")


def test_unscales(loss_scale_stepped):
    """Divides every finite `float16` by the scale it was made with; not a bit is lost."""
    every = torch.arange(-32_768, 32_768).to(torch.int16).view(torch.float16)
    finite = every[every.isfinite()]
    tiny = finite[finite.abs() < 2.0**-10]
    for scale in (1.0, 2.0**16, 2.0**30):
        for streak in (0, 4):
            for grad in (tiny, finite):
                unscaled = loss_scale_stepped.ask([GOOD, grad], scale, streak, 5).value[0]
                if unscaled is None:
                    raise Mismatch("A step was skipped although all gradients were finite.")
                assert_same_bits(unscaled[1], grad.float() / scale, of=grad)


def test_skips(loss_scale_stepped, grads):
    """Skips the step if, and only if, some gradient holds an infinity or a NaN."""
    large = torch.full((40,), 65504.0, dtype=torch.float16)
    fine = [
        ([large], "40 times 65504"),
        ([large, -large], "65504 and -65504"),
        (grads, "finite numbers"),
    ]
    spoiled = []
    for value in (float("inf"), float("-inf"), float("nan")):
        for place in range(3):
            flat = grads[place].reshape(-1).clone()
            flat[place % flat.numel()] = value  # BAD has it last
            wrong = [*grads[:place], flat.reshape(grads[place].shape), *grads[place + 1 :]]
            spoiled.append((wrong, f"{value} in tensor {place} of {len(grads)}"))
    both = torch.tensor([float("inf"), float("-inf")]).half()
    spoiled.append(([both, GOOD], "inf and -inf"))
    for cases, skip in ((fine, False), (spoiled, True)):
        for given, what in cases:
            unscaled = loss_scale_stepped.ask(given, 256.0, 0, 5).value[0]
            words = {True: "None: skipped", False: "gradients: a step"}
            assert_equal(words[unscaled is None], words[skip], f"The gradients hold {what}.")


def history(batches, scale, streak, interval, factors):
    """Return what torch's own scaler makes of the same gradients. `factors` grow and shrink."""
    told = []
    scales, count = torch.tensor(scale), torch.tensor(streak, dtype=torch.int32)
    for grads in batches:
        skip = not all(bool(grad.isfinite().all()) for grad in grads)
        torch._amp_update_scale_(scales, count, torch.tensor(float(skip)), *factors, interval)
        told.append((skip, scales.item(), count.item()))
    return told


def compare(loss_scales, pattern, scale, streak, interval, factors):
    batches = [[GOOD if letter == "g" else BAD] for letter in pattern]
    got = [tuple(step[1:]) for step in loss_scales.ask(batches, scale, streak, interval).value]
    expected = [step[1:] for step in history(batches, scale, streak, interval, factors)]
    try:
        assert_equal(got, expected)
    except Mismatch:
        pairs = enumerate(zip(got, expected, strict=True))
        first = next((step for step, pair in pairs if pair[0] != pair[1]), None)
        if first is None:  # the same numbers, of other types
            raise
        raise differs_at(first, got, expected, pattern, (scale, streak), interval) from None


def differs_at(step, got, expected, pattern, start, interval):
    """Return a mismatch that shows one step: what went in and what came out."""
    scale, streak = expected[step - 1] if step else start
    kind = "a good step" if pattern[step] == "g" else "an overflow"
    rows = (
        ("went in", f"scale {scale:g}, streak {streak}, interval {interval}"),
        ("expected", f"scale {expected[step][0]:g}, streak {expected[step][1]}"),
        ("got", f"scale {got[step][0]:g}, streak {got[step][1]}"),
    )
    return Mismatch(f"Scale and streak differ after {kind}, number {step + 1} in its course.", rows)


def test_grows(loss_scales, factors):
    """Multiplies the scale by {{grow}} after `interval` good steps in a row, and counts anew."""
    for interval in range(1, 6):
        for streak in range(interval):
            for scale in (1.0, 2.0**16):
                compare(loss_scales, "g" * 7, scale, streak, interval, factors)


def test_backs_off(loss_scales, factors):
    """Divides the scale by {{shrink}} at every overflow, and counts anew."""
    for interval in (2, 3, 5):
        for streak in range(interval):
            for pattern in ("bg", "bbbg", "bggggg", "gbgbgggg"):
                compare(loss_scales, pattern, 2.0**16, streak, interval, factors)


def test_any_course(loss_scales, rng, factors):
    """Random courses of 40 steps: the same scale and streak as PyTorch's scaler, throughout."""
    for interval in (1, 2, 4, 7):
        draws = (torch.rand(40, generator=rng) < 0.2).tolist()
        pattern = "".join("b" if bad else "g" for bad in draws)
        # 40 times the largest factor, or the smallest, leave the range of neither float
        compare(loss_scales, pattern, 1.0, 0, interval, factors)


def test_training(loss_scale_trained, factors):
    """From a scale far too large: the scale comes down, and a gradient of 1e-8 arrives."""
    small = torch.tensor([1e-4, 1e-4], dtype=torch.float16)
    for start, count in ((2.0**40, 40), (2.0**15, 3)):
        steps = loss_scale_trained.ask(small, start, 4, count).value
        scale, streak = start, 0
        for number, (gradient, next_scale) in enumerate(steps):
            arrived = torch.tensor(scale).half() * small[0] * small[1]
            skip, after, streak = history([[arrived]], scale, streak, 4, factors)[0]
            what = f"Step {number}: (skipped, scale)."
            assert_equal((gradient is None, next_scale), (skip, after), what)
            if gradient is not None:
                assert_close(
                    gradient,
                    torch.tensor(1e-8),
                    rtol=0.01,
                    atol=0.0,
                    because="float16 rounds 1e-4 too",
                )
            scale = after
