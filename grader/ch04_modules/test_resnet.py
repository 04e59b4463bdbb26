"""Checks of `resnet`: counts, layers, the residual, values in both modes, gradients."""

from collections import Counter

import pytest
import torch

from grader import about, assert_close, assert_equal, assert_tensor, gate, points
from grader.ch04_modules.probes.networks import describe_network, run_network
from grader.ch04_modules.residual import Network

RESNET18 = [[2, 2, 2, 2], [64, 128, 256, 512], 1000]
RESNET34 = [[3, 4, 6, 3], [64, 128, 256, 512], 1000]
SMALL = ([[1, 3], [4, 6], 3], [[2, 1, 1], [3, 3, 5], 4])
FIVE_STAGES = [[1, 2, 1, 1, 1], [2, 3, 3, 4, 5], 2]
FLOAT64 = {"rtol": 1e-7, "atol": 1e-8, "because": "order of float64 sums"}


@pytest.fixture
def x(rng):
    """float64 (2, 3, 37, 45): sides that no stride divides."""
    return torch.randn(2, 3, 37, 45, generator=rng, dtype=torch.float64)


def compare(network_run, spec, x, mode, zeroed=False, grads=False):
    got = network_run.ask(spec, x, mode, zeroed).value
    expected = run_network(Network, spec, x, mode, zeroed)
    weights = "all 3×3 convolutions at zero" if zeroed else "values by shape"
    with about(*called(spec), ("x", f"{tuple(x.shape)}, in {mode} mode, {weights}")):
        outputs = got["output"], expected["output"]
        if zeroed:
            # what the image changes: a slip in the head alone is another check's
            outputs = tuple(output - output.mean(0) for output in outputs)
        assert_close(*outputs, **FLOAT64)
        if mode == "train":
            said = "The batches that each norm has counted after one call, sorted."
            assert_equal(sorted(got["batches"]), expected["batches"], said)
        if grads:
            shapes = list(got["grads"]), list(expected["grads"])
            assert_equal(*shapes, "The parameters' shapes differ.")
            for shape, total in expected["grads"].items():
                with about(
                    ("gradients", f"of all parameters of shape {shape}, absolute values summed")
                ):
                    because = "float64 sums"
                    assert_close(got["grads"][shape], total, rtol=1e-6, atol=1e-6, because=because)


def called(spec):
    """Return the row that says which network it is."""
    return (("call", f"resnet({', '.join(map(str, spec))})"),)


@gate
def test_shape(network_run, x):
    """An image becomes one number per class."""
    got = network_run.ask(SMALL[0], x, "eval", False).value["output"]
    assert_tensor(got, dtype=torch.float64, shape=(2, 3))


def test_counts(network_described):
    """ResNet-18 has 11,689,512 parameters, ResNet-34 21,797,672."""
    for spec, count in ((RESNET18, 11_689_512), (RESNET34, 21_797_672)):
        got = network_described.ask(spec).value
        with about(*called(spec)):
            assert_equal(got["parameters"], count, "The number of parameters differs.")
            buffers = describe_network(Network, spec)["buffers"]
            assert_equal(got["buffers"], buffers, "The number of elements in buffers differs.")


def test_layers(network_described):
    """Its convolutions have the right channels, kernels, strides and paddings, and no bias."""
    for spec in (RESNET18, *SMALL, FIVE_STAGES):
        got, expected = network_described.ask(spec).value, describe_network(Network, spec)
        # only those that differ: a network has too many to look through
        have, want = (Counter(map(tuple, one["convolutions"])) for one in (got, expected))
        said = "Convolutions (in, out, kernel, stride, padding) differ. Those that differ:"
        with about(*called(spec)):
            assert_equal(got["biases"], 0, "The number of convolutions that have a bias.")
            assert_equal(sorted((have - want).elements()), sorted((want - have).elements()), said)


def test_head(network_described):
    """One linear layer, to the number of classes, with a bias."""
    for spec in (RESNET18, *SMALL):
        got, expected = network_described.ask(spec).value, describe_network(Network, spec)
        with about(*called(spec)):
            said = "The linear layers, as (in_features, out_features, whether there is a bias)."
            assert_equal(got["linear"], expected["linear"], said)


def test_residual(network_run, x):
    """With all 3×3 convolutions at zero the input still comes through, on the shortcuts."""
    for spec in SMALL:
        compare(network_run, spec, x, "eval", zeroed=True)


@points(3)
def test_values(network_run, x):
    """In evaluation it gives what the specification says, for any size of image."""
    for spec in SMALL:
        compare(network_run, spec, x, "eval")
    compare(network_run, SMALL[0], x[:1, :, :33, :20], "eval")


def test_training(network_run, x):
    """In training too, and each norm sees one batch per call."""
    for spec in SMALL:
        compare(network_run, spec, x, "train")


def test_gradients(network_run, x):
    """Every parameter gets its gradient."""
    compare(network_run, SMALL[1], x, "eval", grads=True)
