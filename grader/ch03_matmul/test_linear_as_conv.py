"""Checks of `linear_as_conv`: the same numbers, from the same memory."""

import pytest
import torch
import torch.nn.functional as F

from grader import (
    about,
    assert_close,
    assert_equal,
    assert_holds,
    assert_raises,
    assert_tensor,
    facts,
    gate,
    points,
    whole_numbers,
)

CLOSE = {"rtol": 0.0, "atol": 0.01, "because": "whole numbers: a wrong term is off by at least 1"}
CASES = ((3, (4, 5), 6), (1, (7, 2), 2), (5, (1, 1), 7), (2, (1, 3), 1))


@pytest.fixture
def order(parameters):
    """The dimensions of a feature map, from the outermost to the innermost of its features."""
    return parameters["order"]


def flat(x, order):
    """Return feature maps (N, C, H, W) as the linear layer takes them."""
    return x.permute(0, *order).flatten(1)


def called(weight, bias, size, x):
    """Return the rows that say what was converted, and what it was called on."""
    out, features = weight.shape
    linear = f"nn.Linear({features}, {out}{'' if bias is not None else ', bias=False'})"
    return ("call", f"linear_as_conv({linear}, {size})(x)"), ("x", f"shape {tuple(x.shape)}")


@gate
def test_shape(linear_converted, rng):
    """Returns a `Conv2d` that gives `(N, O, 1, 1)` on maps of the given size."""
    channels, size, out = CASES[0]
    weight = whole_numbers(rng, (out, channels * size[0] * size[1]))
    x = whole_numbers(rng, (2, channels, *size))
    found = linear_converted.ask(weight, whole_numbers(rng, (out,)), size, x).value
    assert_holds(found["is a Conv2d"], "What you return is not an `nn.Conv2d`.")
    assert_tensor(found["before"], dtype=torch.float32, shape=(2, out, 1, 1))


def test_same_numbers(linear_converted, rng, order):
    """On maps of the given size the convolution gives what the linear layer gives."""
    for channels, size, out in CASES:
        weight = whole_numbers(rng, (out, channels * size[0] * size[1]))
        x = whole_numbers(rng, (3, channels, *size))
        for bias in (whole_numbers(rng, (out,)), None):
            expected = F.linear(flat(x, order), weight, bias)[:, :, None, None]
            with about(*called(weight, bias, size, x)):
                assert_close(
                    linear_converted.ask(weight, bias, size, x).value["before"], expected, **CLOSE
                )


def test_slides(linear_converted, rng, order):
    """On larger maps it gives the linear layer's answer at each place."""
    for channels, size, out in CASES:
        weight = whole_numbers(rng, (out, channels * size[0] * size[1]))
        bias = whole_numbers(rng, (out,))
        x = whole_numbers(rng, (2, channels, size[0] + 2, size[1] + 3))
        got = linear_converted.ask(weight, bias, size, x).value["before"]
        inner = [(0, 1, 4, 5)[dim] for dim in order]  # of (N, C, rows, columns, h, w)
        windows = x.unfold(2, size[0], 1).unfold(3, size[1], 1)
        expected = F.linear(windows.permute(0, 2, 3, *inner).flatten(3), weight, bias)
        with about(*called(weight, bias, size, x)):
            assert_close(got, expected.permute(0, 3, 1, 2).contiguous(), **CLOSE)


@points(2)
def test_shares_its_memory(linear_converted, rng, order):
    """Weight and bias are parameters in the linear layer's memory: training one trains both."""
    for channels, size, out in CASES:
        weight = whole_numbers(rng, (out, channels * size[0] * size[1]))
        bias = whole_numbers(rng, (out,))
        x = whole_numbers(rng, (2, channels, *size))
        found = linear_converted.ask(weight, bias, size, x).value
        assert_equal(found["parameters"], ["weight", "bias"], "The parameters' names.")
        for name in ("weight", "bias"):
            fact = facts(found[name])
            assert_holds(fact.is_parameter, f"`{name}` is no parameter.")
            assert_holds(fact.requires_grad, f"`{name}` cannot be trained.")
            assert_holds(fact.aliases is not None, f"`{name}` has memory of its own.")
        expected = F.linear(flat(x, order), 2 * weight, bias)[:, :, None, None]
        trained = ("done", "linear.weight.mul_(2), after the conversion")
        with about(trained, *called(weight, bias, size, x)):
            assert_close(found["after"], expected, **CLOSE)


def test_without_bias_and_in_float64(linear_converted, rng, order):
    """Without a bias there is none; the dtype is the linear layer's; so is its layout."""
    weight, x = whole_numbers(rng, (12, 3)).double().t(), whole_numbers(rng, (2, 3, 2, 2)).double()
    found = linear_converted.ask(weight, None, (2, 2), x).value
    assert_equal(found["parameters"], ["weight"], "The parameters' names.")
    assert_tensor(found["weight"], dtype=torch.float64, shape=(3, 3, 2, 2))
    assert_holds(facts(found["weight"]).aliases is not None, "The weight was copied.")
    expected = F.linear(flat(x, order), weight)[:, :, None, None]
    assert_close(found["before"], expected, **CLOSE)


def test_uneven(linear_refused):
    """Features that are no whole number of maps raise `ValueError`."""
    for features, size in ((10, (2, 2)), (5, (7, 1)), (9, (2, 3))):
        rows = (("call", f"linear_as_conv(nn.Linear({features}, 2), {size})"),)
        what = "The features are no whole number of maps: a ValueError was expected."
        assert_raises(linear_refused.ask(features, size), "ValueError", what, *rows)
