"""Checks of `fold_batch_norm`: values for many settings, and what kind of thing comes back."""

import pytest
import torch

from grader import (
    about,
    assert_close,
    assert_equal,
    assert_holds,
    assert_raises,
    gate,
    points,
    python_random,
)
from grader.ch04_modules.probes.norms import conv_and_norm

FLOAT64 = {"rtol": 1e-9, "atol": 1e-9, "because": "order of float64 sums"}


def tensors_for(rng, dims, options, dtype=torch.float64):
    """Return random tensors for a convolution and its norm, and an input."""
    out, groups = options["out_channels"], options.get("groups", 1)
    size = options["kernel_size"]
    shape = (out, options["in_channels"] // groups, *[size] * dims)

    def draw(*shape):
        return torch.randn(shape, generator=rng, dtype=torch.float64).to(dtype)

    tensors = {name: draw(out) for name in ("conv bias", "gain", "shift", "mean")}
    tensors["variance"] = draw(out).square() + 0.01
    tensors["weight"] = draw(*shape)
    return tensors, draw(2, options["in_channels"], *[7] * dims)


@pytest.fixture
def random(rng):
    return python_random(rng)


def called(dims, options, norm_options):
    """Return the rows that say what was folded."""

    def listed(arguments):
        return ", ".join(f"{name}={value!r}" for name, value in arguments.items())

    channels = options["out_channels"]
    norm = f"nn.BatchNorm{dims}d({channels}{', ' if norm_options else ''}{listed(norm_options)})"
    return ("conv", f"nn.Conv{dims}d({listed(options)})"), ("norm", norm)


def compare(folded, rng, dims, options, norm_options=None, dtype=torch.float64, training=False):
    """Compare the folded convolution's output with that of the two in evaluation."""
    norm_options = norm_options or {}
    tensors, x = tensors_for(rng, dims, options, dtype)
    got = folded.ask(dims, options, norm_options, tensors, x, False, training).value
    conv, norm = conv_and_norm(dims, options, norm_options, tensors)
    with torch.no_grad():
        expected = norm(conv(x))
    loose = {"rtol": 1e-4, "atol": 1e-4, "because": "float32"}
    with about(*called(dims, options, norm_options)):
        assert_close(got["output"], expected, **(FLOAT64 if dtype is torch.float64 else loose))
    return got


def options_of(channels=(2, 3), size=3, **more):
    return {"in_channels": channels[0], "out_channels": channels[1], "kernel_size": size, **more}


@gate
def test_one_by_one(folded, rng):
    """A 1×1 convolution without bias: a convolution with the right output comes back."""
    got = compare(folded, rng, 2, options_of((1, 1), 1, bias=False))
    assert_equal(got["type"], "Conv2d", "The type of what comes back.")


@points(2.5)
def test_with_bias(folded, rng):
    """One factor per output channel; the convolution's own bias is scaled and shifted with the rest."""
    for channels in ((2, 3), (3, 3)):
        for size in (1, 3):
            compare(folded, rng, 2, options_of(channels, size, bias=True))


def test_without(folded, rng):
    """No bias, no `affine`: what is None counts as zero or one."""
    for bias in (True, False):
        compare(folded, rng, 2, options_of(bias=bias), {"affine": False})
        compare(folded, rng, 2, options_of(bias=bias))


def test_eps(folded, rng):
    """The norm's own eps, added to the variance before the root."""
    for eps in (0.0, 0.3, 2.0):
        compare(folded, rng, 1, options_of(bias=False), {"eps": eps})


def test_settings(folded, rng, random):
    """Stride, padding, dilation, groups and padding mode are kept, in one to three dimensions."""
    for dims in (1, 2, 3):
        for _ in range(4):
            options = options_of(
                (4, 8),
                2,
                stride=random.choice([1, 2]),
                padding=random.choice([1, 2]),
                dilation=random.choice([1, 2]),
                groups=random.choice([1, 2, 4]),
                padding_mode=random.choice(["zeros", "reflect", "circular"]),
                bias=random.random() < 0.5,
            )
            got = compare(folded, rng, dims, options)
            assert_equal((got["type"], got["settings"]), (f"Conv{dims}d", True), "Settings differ.")


def test_what_it_is(folded, rng):
    """Weight and bias are leaves that want a gradient, in the convolution's dtype."""
    for dtype in (torch.float64, torch.float32):
        got = compare(folded, rng, 2, options_of(bias=False), dtype=dtype)
        _expect_parameters(got, dtype, "(is leaf, wants gradient, dtype) differ.")
    for bias in (False, True):
        options = options_of(bias=bias)
        tensors, x = tensors_for(rng, 2, options, torch.float16)
        got = folded.ask(2, options, {"dtype": torch.float32}, tensors, x).value
        said = (
            "For a float16 convolution and a float32 norm (is leaf, wants gradient, dtype) differ."
        )
        _expect_parameters(got, torch.float16, said)
        tensors, x = tensors_for(rng, 2, options)
        got = folded.ask(2, options, {}, tensors, x, True).value
        said = "For a frozen convolution (is leaf, wants gradient, dtype) differ."
        _expect_parameters(got, torch.float64, said)


def _expect_parameters(got, dtype, said):
    expected = {"bias": (True, True, dtype), "weight": (True, True, dtype)}
    assert_equal(dict(sorted(got["parameters"].items())), expected, said)


def test_apart(folded, folded_without, rng):
    """The two stay as they were and share no memory; without statistics it is a ValueError."""
    for bias in (True, False):
        for training in (False, True):
            got = compare(folded, rng, 2, options_of(bias=bias), training=training)
            mode = "training" if training else "evaluation"
            with about(("norm in", mode), ("conv", f"with{'' if bias else 'out'} a bias")):
                assert_holds(not got["is the same"], "What came back is the convolution itself.")
                assert_holds(got["conv kept"], "The convolution's values have changed.")
                assert_holds(got["norm kept"], "The norm's values have changed.")
                what = "(conv.training, norm.training) have changed."
                assert_equal(tuple(got["modes"]), (True, training), what)
                assert_holds(got["apart"], "The result shares memory with the convolution.")
    assert_raises(folded_without, "ValueError", "A norm without running statistics was taken.")
