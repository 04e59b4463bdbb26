"""Checks of `accumulate`: against one backward over all samples, on the grader's side."""

import pytest
import torch

from grader import about, assert_close, assert_equal, assert_holds, claimed, gate, points
from grader.ch08_ddp.probes.accumulation import loss_of_output, small_model

ROUNDING = "the same sums in float64, in another order"


@pytest.fixture
def weights(rng):
    return [torch.randn(shape, generator=rng, dtype=torch.float64) for shape in [(4, 3), 4, (1, 4)]]


@pytest.fixture
def micro_batches(rng):
    """Three micro-batches of two samples on each of two ranks."""
    return cut(rng, [2, 2, 2], [2, 2, 2])


@pytest.fixture
def turns():
    return 2


def cut(rng, *sizes):
    """Return each rank's micro-batches of these sizes."""
    return [[torch.randn(n, 3, generator=rng, dtype=torch.float64) for n in own] for own in sizes]


def whole(weights, samples):
    """Return the mean loss of some samples, and its gradients."""
    model = small_model(weights)
    loss = loss_of_output(model(samples))
    loss.backward()
    return loss.item(), [p.grad for p in model.parameters()]


def compare(accumulated, weights, micro_batches, turns):
    samples = torch.cat([x for own in micro_batches for x in own])
    _, expected = whole(weights, samples)
    sizes = [[len(x) for x in own] for own in micro_batches]
    for rank, of_rank in enumerate(accumulated.ask(weights, micro_batches, turns).value):
        for turn, found in enumerate(of_rank):
            for at, (mine, theirs) in enumerate(zip(found["grads"], expected, strict=True)):
                where = f"Rank {rank}, turn {turn}, `.grad` of parameter {at}. "
                with about(("samples", f"{sizes}, by rank and micro-batch"), of=where):
                    assert_equal(mine is None, theirs is None, "Whether it is `None`.")
                    if theirs is not None:
                        assert_close(mine, theirs, rtol=1e-10, atol=1e-12, because=ROUNDING)


@gate
def test_runs(accumulated):
    """Returns a float, and calls `loss_of` once for each micro-batch."""
    for of_rank in accumulated.value:
        for found in of_rank:
            assert_equal(type(found["loss"]).__name__, "float", "The type of what is returned.")
            losses = sum(name.startswith("loss") for name, _ in found["events"])
            assert_equal(losses, 3, "How often `loss_of` was called.")


def test_gradients(accumulated, weights, micro_batches, turns):
    """Micro-batches of the same size: the gradient over all samples of all ranks, twice."""
    compare(accumulated, weights, micro_batches, turns)


def test_sizes(accumulated, weights, rng):
    """Micro-batches of different sizes."""
    compare(accumulated, weights, cut(rng, [1, 5, 2], [2, 2, 4]), 1)


def test_loss(accumulated, weights, rng):
    """The mean loss over this rank's samples is returned."""
    micro_batches = cut(rng, [1, 5, 2], [2, 2, 4])
    found = accumulated.ask(weights, micro_batches, 1).value
    for rank, (own, [got]) in enumerate(zip(micro_batches, found, strict=True)):
        loss, _ = whole(weights, torch.cat(own))
        with about(of=f"The loss that rank {rank} returns, of {[len(x) for x in own]} samples. "):
            assert_close(
                torch.tensor(float(got["loss"]), dtype=torch.float64),
                torch.tensor(loss, dtype=torch.float64),
                rtol=1e-10,
                atol=1e-12,
                because=ROUNDING,
            )


@claimed
@points(3)
def test_one_message(accumulated, weights):
    """One all-reduce of all gradients, once the last loss is known, in each turn."""
    expected = [("all_reduce", sum(w.nbytes for w in weights))]
    for rank, of_rank in enumerate(accumulated.value):
        for turn, found in enumerate(of_rank):
            sent = [(n, b) for n, b in found["events"] if n.startswith("all_")]
            assert_equal(sent, expected, f"What rank {rank} sent in turn {turn}: name, bytes.")
            names = [n for n, _ in found["events"] if n.startswith(("all_", "loss"))]
            assert_equal(names[-1], "all_reduce", "What came last.")


def test_different_cuts(accumulated, weights, rng):
    """Ranks that cut the same number of samples into different numbers of micro-batches."""
    compare(accumulated, weights, cut(rng, [6], [1, 3, 1, 1]), 1)


def test_one_ahead(accumulated, weights, micro_batches, turns):
    """Never takes a micro-batch more than one ahead of the one in turn."""
    compare(accumulated, weights, micro_batches, turns)
    for rank, of_rank in enumerate(accumulated.ask(weights, micro_batches, turns).value):
        names = [name for name, _ in of_rank[0]["events"] if name.startswith(("take", "loss"))]
        taken = [names[: at + 1].count(f"loss of {2}") for at in range(len(names))]
        ahead = [
            sum(n.startswith("take") for n in names[: at + 1]) - done
            for at, done in enumerate(taken)
        ]
        rows = ("expected", "2 at most"), ("got", str(max(ahead))), ("in order", ", ".join(names))
        what = f"Micro-batches that rank {rank} took and had not yet run."
        assert_holds(max(ahead) <= 2, what, *rows)


@claimed
def test_one_graph_at_a_time(accumulated, weights, micro_batches, turns):
    """`backward` has run for each micro-batch before the next goes forward."""
    compare(accumulated, weights, micro_batches, turns)
    for rank, of_rank in enumerate(accumulated.value):
        for turn, found in enumerate(of_rank):
            names = [n for n, _ in found["events"] if n.startswith(("loss", "backward"))]
            alive = [
                names[: at + 1].count("loss of 2") - names[: at + 1].count("backward")
                for at in range(len(names))
            ]
            rows = ("expected", "1 at most"), ("got", str(max(alive)))
            what = f"Graphs that rank {rank} kept at a time in turn {turn}."
            assert_holds(max(alive) <= 1, what, *rows, ("in order", ", ".join(names)))
