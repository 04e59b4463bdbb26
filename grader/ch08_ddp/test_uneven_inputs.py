"""Checks of `uneven_inputs`: against one process that has the batches of all ranks."""

import pytest
import torch

from grader import about, assert_close, assert_equal, assert_holds, assert_same_bits, gate, points
from grader.ch08_ddp.probes.uneven import UNEVEN_MAKERS, Tanh, uneven_loss

ROUNDING = "the same sums in float64, in another order"


@pytest.fixture
def weight(rng):
    return torch.randn(4, 3, generator=rng, dtype=torch.float64)


@pytest.fixture
def bias(rng):
    return torch.randn(3, generator=rng, dtype=torch.float64)


def some(rng, *counts):
    """Return so many batches for each rank; sizes of batches differ."""
    return [
        [
            torch.randn(2 + (number + rank) % 3, 4, generator=rng, dtype=torch.float64)
            for number in range(count)
        ]
        for rank, count in enumerate(counts)
    ]


@pytest.fixture
def batches(rng):
    return some(rng, 2, 2)


@pytest.fixture
def kind():
    return "sgd"


def together(weight, bias, batches, kind):
    """Return the parameters after all rounds, computed in one process."""
    model = Tanh(weight, bias)
    optimizer = UNEVEN_MAKERS[kind](model.parameters())
    for number in range(max(map(len, batches))):
        there = [mine[number] for mine in batches if number < len(mine)]
        optimizer.zero_grad()
        (sum(uneven_loss(model, batch) for batch in there) / len(there)).backward()
        optimizer.step()
    return [p.detach() for p in model.parameters()]


def compare(found, weight, bias, batches, kind):
    expected = together(weight, bias, batches, kind)
    counts = ("batches", f"{[len(mine) for mine in batches]}, by rank")
    for number, rank in enumerate(found):
        with about(counts, of=f"Rank {number}. "):
            assert_equal(rank["rounds"], max(map(len, batches)), "The number of rounds.")
            for at, (got, right) in enumerate(zip(rank["parameters"], expected, strict=True)):
                with about(of=f"Parameter {at} after all rounds with {kind}. "):
                    assert_close(got, right, rtol=1e-6, atol=1e-8, because=ROUNDING)


@gate
def test_trains(trained_unevenly, weight):
    """Returns an `int`, and the parameters have moved."""
    for rank in trained_unevenly.value:
        assert_equal(type(rank["rounds"]).__name__, "int", "The type of what is returned.")
        assert_holds(not torch.equal(rank["parameters"][0], weight), "No parameter has moved.")


def test_even(trained_unevenly, weight, bias, batches, kind):
    """With equal numbers of batches: means over all ranks, and old gradients do not count."""
    compare(trained_unevenly.value, weight, bias, batches, kind)


@points(3)
def test_uneven(trained_unevenly, weight, bias, rng):
    """With unequal numbers: means over the ranks that still have a batch."""
    for counts in ((3, 1), (1, 4), (1, 3, 2)):
        batches = some(rng, *counts)
        found = trained_unevenly.ask(weight, bias, batches, "sgd").value
        compare(found, weight, bias, batches, "sgd")


def test_without_any(trained_unevenly, weight, bias, rng):
    """A rank without a single batch takes part; without any batch at all there is no round."""
    for counts in ((0, 3), (2, 0, 0)):
        batches = some(rng, *counts)
        found = trained_unevenly.ask(weight, bias, batches, "sgd").value
        compare(found, weight, bias, batches, "sgd")
    for rank in trained_unevenly.ask(weight, bias, [[], []], "sgd").value:
        assert_equal(rank["rounds"], 0, "The number of rounds.")
        assert_same_bits(rank["parameters"][0], weight)


def test_optimizers(trained_unevenly, weight, bias, rng):
    """Optimizers that remember: all ranks make all steps."""
    for kind in ("adam", "momentum"):
        batches = some(rng, 1, 4)
        found = trained_unevenly.ask(weight, bias, batches, kind).value
        compare(found, weight, bias, batches, kind)


def test_ranks_agree(trained_unevenly, weight, bias, rng):
    """The parameters of all ranks are the same, to the bit."""
    found = trained_unevenly.ask(weight, bias, some(rng, 1, 4), "adam").value
    for number, rank in enumerate(found[1:], 1):
        for at, (got, first) in enumerate(
            zip(rank["parameters"], found[0]["parameters"], strict=True)
        ):
            with about(of=f"Parameter {at} of rank {number}, beside that of rank 0. "):
                assert_same_bits(got, first)


def test_one_at_a_time(trained_unevenly, weight, bias, rng):
    """Each batch is read when the step of the one before is done."""
    found = trained_unevenly.ask(weight, bias, some(rng, 3, 1), "sgd").value
    for rank, count in zip(found, (3, 1), strict=True):
        own = [[f"batch {number}", "loss", "step"] for number in range(count)]
        right = [note for notes in own for note in notes] + ["step"] * (3 - count)
        assert_equal(rank["notes"], right, "What happened, in order.")
