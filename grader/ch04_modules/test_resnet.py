"""Checks of `resnet`: counts, layers, the residual, values in both modes, gradients."""

from collections import Counter

import pytest
import torch

from grader import assert_close, assert_equal, assert_tensor, gate
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
    assert_close(got["output"], expected["output"], **FLOAT64)
    if mode == "train":
        assert_equal(sorted(got["batches"]), expected["batches"], "Each norm is used once.")
    if grads:
        assert_equal(list(got["grads"]), list(expected["grads"]), "The parameters' shapes differ.")
        for shape, total in expected["grads"].items():
            assert_close(got["grads"][shape], total, rtol=1e-6, atol=1e-6, because="float64 sums")


@gate
def test_shape(network_run, x):
    """An image becomes one number per class."""
    got = network_run.ask(SMALL[0], x, "eval", False).value["output"]
    assert_tensor(got, dtype=torch.float64, shape=(2, 3))


def test_counts(network_described):
    """ResNet-18 has 11,689,512 parameters, ResNet-34 21,797,672."""
    for spec, count in ((RESNET18, 11_689_512), (RESNET34, 21_797_672)):
        got = network_described.ask(spec).value
        assert_equal(got["parameters"], count, "The number of parameters differs.")
        assert_equal(got["buffers"], describe_network(Network, spec)["buffers"], "Buffers differ.")


def test_layers(network_described):
    """Its convolutions have the right channels, kernels, strides and paddings, and no bias."""
    for spec in (RESNET18, *SMALL, FIVE_STAGES):
        got, expected = network_described.ask(spec).value, describe_network(Network, spec)
        assert_equal(got["biases"], 0, "These many convolutions have a bias.")
        assert_equal(got["linear"], expected["linear"], "Linear layers (in, out, bias) differ.")
        # only those that differ: a network has too many to look through
        have, want = (Counter(map(tuple, one["convolutions"])) for one in (got, expected))
        said = "Convolutions (in, out, kernel, stride, padding) differ. Those that differ:"
        assert_equal(sorted((have - want).elements()), sorted((want - have).elements()), said)


def test_residual(network_run, x):
    """With all 3×3 convolutions at zero the input still comes through, on the shortcuts."""
    for spec in SMALL:
        compare(network_run, spec, x, "eval", zeroed=True)


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
