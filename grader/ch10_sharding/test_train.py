"""Checks of `train`: every run's losses against one process that has the whole model."""

import math

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_equal,
    assert_holds,
    claimed,
    compared,
    gate,
    points,
)
from grader.ch10_sharding.shards import bounds

SHARE = 0.45
FIRST, THREE = (2, 2), (3, 1)
KILLED = "killed in the middle of the second save"
OTHER = "after a run on (1, 2) that saved step 4"


@pytest.fixture
def sizes(rng):
    seed = int(torch.randint(2**31, (), generator=rng))
    sizes = {"blocks": 10, "width": 59, "hidden": 33, "batch": 4, "save_every": 2}
    return {**sizes, "seed": seed, "rate": 0.01}


@pytest.fixture
def full(rng, sizes):
    """Weights at the start (blocks, width, 2, hidden)."""
    shape = (sizes["blocks"], sizes["width"], 2, sizes["hidden"])
    return torch.randn(shape, generator=rng, dtype=torch.float64) * 0.1


@pytest.fixture
def inputs(rng, sizes):
    return torch.randn(11, sizes["width"], generator=rng, dtype=torch.float64)


@pytest.fixture
def targets(rng, sizes):
    return torch.randn(11, sizes["width"], generator=rng, dtype=torch.float64)


@pytest.fixture
def runs():
    """Meshes, how much of the first run's puts is left, and the steps of the job.

    The first run; one that was killed in its second save, and its end; one that was killed before the
    last put of its second save, and its end; one that was killed in its first save, and its end. Adam's
    moments show in the second step after a save. A step costs 50 messages.
    """
    return [
        [FIRST, None, 4],
        [THREE, 0.75, 4],
        [(1, 1), None, 5],
        [(1, 2), -1, 4],
        [FIRST, None, 5],
        [(1, 1), 0.25, 2],
        [(1, 1), None, 3],
    ]


@pytest.fixture
def most(full):
    """The bytes that a rank may hold: 45 % of all weights, gradients and moments."""
    return int(SHARE * state_bytes(full))


STEPS = 5
"""The most that a run takes."""


def alone(sizes, full, inputs, targets):
    """Return the losses of one process."""
    g = torch.Generator().manual_seed(sizes["seed"])
    weights = [w.clone().requires_grad_() for w in full]
    optimizer = torch.optim.Adam(weights, sizes["rate"])
    losses, order = [], []
    for _ in range(STEPS):
        if not len(order):
            order = torch.randperm(len(inputs), generator=g)
        chosen, order = order[: sizes["batch"]], order[sizes["batch"] :]
        x = torch.randn(len(chosen), sizes["width"], generator=g, dtype=torch.float64) * 0.1
        x = x + inputs[chosen]
        for w in weights:
            x = x + (x @ w[:, 0]).relu() @ w[:, 1].T
        loss = (x - targets[chosen]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def compare(run, right, begin, end, words):
    """Compare the losses of all ranks of a run with those of one process, from a step to another."""
    rows = (("on", words),)
    if "raised" in run:
        compared("nothing was put" in run["raised"], False)
        raise Mismatch("The run ended with an error.", (*rows, ("got", run["raised"])))
    for rank, of_rank in enumerate(run["ranks"]):
        steps = [step for step, _ in of_rank["losses"]]
        with about(*rows):
            expected = list(range(begin, end + 1))
            assert_equal(steps, expected, f"The steps that rank {rank} took.")
        for step, loss in of_rank["losses"]:
            compared(round(loss, 6), round(right[step - 1], 6))
            if not math.isclose(loss, right[step - 1], rel_tol=1e-8):
                shown = (("expected", f"{right[step - 1]:.9g}"), ("got", f"{loss:.9g}"))
                raise Mismatch(f"The loss of step {step} on rank {rank}.", (*rows, *shown))


def state_bytes(full):
    """Return the bytes of weights, gradients and both moments."""
    return 4 * full.nbytes


@gate
def test_steps(trained):
    """Returns a step and a loss, a `float`, for each step."""
    for rank, got in enumerate(trained.value[0]["ranks"]):
        good = isinstance(got["losses"], list) and all(
            len(pair) == 2 and isinstance(pair[1], float) for pair in got["losses"]
        )
        assert_holds(good, f"Rank {rank} returns no list of pairs.")
        steps = [step for step, _ in got["losses"]]
        assert_equal(steps, [1, 2, 3, 4], f"The steps that rank {rank} took.")


@points(2)
def test_losses(trained, sizes, full, inputs, targets):
    """On a mesh (2, 2) every rank has the losses of one process."""
    right = alone(sizes, full, inputs, targets)
    compare(trained.value[0], right, 1, 4, f"a mesh {FIRST}, from the start")


@points(2)
def test_three_ranks(trained, sizes, full, inputs, targets):
    """A run that was killed in the middle of a save goes on with three ranks, from the save before."""
    right = alone(sizes, full, inputs, targets)
    found = trained.value
    compare(found[1], right, 3, 4, f"a mesh {THREE}, after a run on {FIRST} that was {KILLED}")
    compare(found[2], right, 5, 5, f"one rank, after a run on {THREE} that saved step 4")


def test_any_moment(trained, sizes, full, inputs, targets):
    """Killed before the last `put` of a save, or in the first save; and the runs that go on from those."""
    right, found = alone(sizes, full, inputs, targets), trained.value
    words = f"after a run on {FIRST} that was killed"
    last = f"{words} before the last `put` of its second save"
    compare(found[3], right, 3, 4, f"a mesh (1, 2), {last}")
    compare(found[4], right, 5, 5, f"a mesh {FIRST}, {OTHER}")
    compare(found[5], right, 1, 2, f"one rank, {words} in the middle of its first save")
    compare(found[6], right, 3, 3, "one rank, after a run on one rank that saved step 2")


@claimed
@points(2)
def test_memory(trained, sizes, full, inputs, targets, most):
    """No rank ever holds 45 % of all weights, gradients and moments."""
    right, found = alone(sizes, full, inputs, targets), trained.value
    compare(found[0], right, 1, 4, f"a mesh {FIRST}, from the start")
    compare(found[1], right, 3, 4, f"a mesh {THREE}, after a run on {FIRST} that was {KILLED}")
    compare(found[4], right, 5, 5, f"a mesh {FIRST}, {OTHER}")
    meshes = (f"a mesh {FIRST}", f"a mesh {THREE}", f"a mesh {FIRST}, {OTHER}")
    for words, run in zip(meshes, (found[0], found[1], found[4]), strict=True):
        for rank, got in enumerate(run["ranks"]):
            share = f"{got['peak']} bytes, {100 * got['peak'] / state_bytes(full):.0f} %"
            rows = (
                ("on", words),
                ("expected", f"{most} bytes at most, 45 %"),
                ("got", share),
            )
            assert_holds(got["peak"] <= most, f"What rank {rank} held at once.", *rows)


@claimed
def test_saves(trained, sizes, full, inputs, targets):
    """Each rank puts its own boxes, and no number is put twice."""
    right, found = alone(sizes, full, inputs, targets), trained.value
    compare(found[0], right, 1, 4, f"a mesh {FIRST}, from the start")
    # what torch writes around a tensor is 1.3 kB, a generator's state 5
    around, saves = 2048 * found[0]["puts"] + 4 * 6000, 4 // sizes["save_every"]
    rows_of, columns_of = bounds(sizes["width"], 2), bounds(sizes["hidden"], 2)
    for rank, got in enumerate(found[0]["bytes"]):
        box = 2 * sizes["blocks"] * rows_of[rank // 2][1] * columns_of[rank % 2][1] * full.itemsize
        most = saves * 3 * box + around // 2
        rows = (
            ("on", f"a mesh {FIRST}, {saves} saves"),
            (
                "expected",
                f"{most} bytes at most: weight and moments of its boxes, and what is around",
            ),
            ("got", f"{got} bytes"),
        )
        assert_holds(got <= most, f"What rank {rank} put.", *rows)
