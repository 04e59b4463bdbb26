"""Checks of `train_step`: against one step on the whole batch, in float64."""

import pytest
import torch
import torch.nn.functional as F

from grader import Mismatch, about, assert_close, assert_equal, claimed, gate, points
from grader.ch05_autograd.probes.training import OPTIMIZER_CODE, OPTIMIZERS, Watched

PARAMETERS = {
    "first": "The parameter `first`",
    "second": "The parameter `second`, which stands in two modules",
    "unused": "The parameter `unused`, which the model does not use",
}
ROUNDING = "a share of the targets may be a float32, whose last bit is 6e-8 of it"


@pytest.fixture
def weights(rng):
    return [
        torch.randn(4, 6, generator=rng, dtype=torch.float64),
        torch.randn(6, 3, generator=rng, dtype=torch.float64),
    ]


def pieces(rng, sizes, padding):
    """Return pieces of these sizes; in piece k the last `padding[k]` targets do not count."""
    made = []
    for size, pad in zip(sizes, padding, strict=True):
        targets = torch.randint(3, (size,), generator=rng)
        targets[size - pad :] = -100
        made.append((torch.randn(size, 4, generator=rng, dtype=torch.float64), targets))
    return made


@pytest.fixture
def optimizer():
    return "sgd"


@pytest.fixture
def steps(rng):
    return [pieces(rng, [3, 3], [0, 0])]


@pytest.fixture
def stale():
    return 0.0


@pytest.fixture
def training():
    return True


def whole(weights, optimizer, steps):
    """Return losses and parameters of steps on whole batches."""
    model = Watched(*weights)
    made = OPTIMIZERS[optimizer](model.parameters())
    losses, parameters = [], []
    for batches in steps:
        inputs, targets = (torch.cat(parts) for parts in zip(*batches, strict=True))
        made.zero_grad()
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        made.step()
        losses.append(loss.item())
        parameters.append([p.detach().clone() for p in model.parameters()])
    return losses, parameters


def compare(stepped, weights, optimizer, steps, stale=0.0):
    """Compare the parameters after every step with those of steps on whole batches."""
    got = stepped.ask(weights, optimizer, steps, stale, True).value
    _, parameters = whole(weights, optimizer, steps)
    case = [("optimizer", OPTIMIZER_CODE[optimizer]), ("batches", as_text(steps))]
    if stale:
        case.append((".grad before", f"full of {stale:g}"))
    for name, mine, theirs in zip(
        PARAMETERS.values(),
        zip(*got["parameters"], strict=True),
        zip(*parameters, strict=True),
        strict=True,
    ):
        with about(*case, of=f"{name}, stacked over the steps: "):
            # Adam divides a gradient by its size: an error far below it grows
            got_all, expected = torch.stack(list(mine)), torch.stack(list(theirs))
            assert_close(got_all, expected, rtol=1e-6, atol=1e-7, because=ROUNDING)


def as_text(steps):
    """Return the pieces of each step's batch: how many of a piece's targets count."""
    told = []
    for batches in steps:
        counts = [f"{int((t != -100).sum())} of {len(t)}" for _, t in batches]
        told.append(f"pieces in which {', '.join(counts)} targets count")
    return "; then ".join(told)


@gate
def test_returns_a_float(stepped, weights):
    """Returns a Python `float`, and the parameters have moved."""
    got = stepped.value
    assert_equal([type(loss).__name__ for loss in got["losses"]], ["float"], "What is returned.")
    if all(map(torch.equal, got["parameters"][0], weights)):
        raise Mismatch("No parameter has moved.")


def test_uneven_sizes(stepped, weights, rng):
    """Pieces of different sizes make the step of the whole batch."""
    for optimizer, sizes in (("sgd", [5, 1, 3]), ("adam", [1, 7]), ("momentum", [4])):
        compare(stepped, weights, optimizer, [pieces(rng, sizes, [0] * len(sizes))])


@points(3)
def test_targets_that_do_not_count(stepped, weights, rng):
    """Each target that counts has the same weight, in whichever piece it is."""
    for optimizer, padding in (("sgd", [3, 0, 1]), ("adam", [0, 3, 2])):
        compare(stepped, weights, optimizer, [pieces(rng, [4, 4, 4], padding)])


def test_a_piece_without_targets(stepped, weights, rng):
    """A piece in which no target counts changes nothing."""
    for padding in ([0, 3, 1], [3, 0, 0], [0, 2, 3]):
        compare(stepped, weights, "sgd", [pieces(rng, [3, 3, 3], padding)])


def test_several_steps(stepped, weights, rng):
    """Old gradients do not count, neither those of before nor those of the last step."""
    steps = [pieces(rng, [3, 2], [1, 0]) for _ in range(3)]
    # with weight decay a gradient of zeros moves a parameter, and none does not
    for optimizer in ("momentum", "adam", "decay"):
        compare(stepped, weights, optimizer, steps, stale=5.0)


def test_loss(stepped, weights, rng):
    """The loss of the whole batch, as it was before the step."""
    steps = [pieces(rng, [5, 1, 4], [1, 0, 3]), pieces(rng, [2, 3], [2, 0])]
    got = stepped.ask(weights, "sgd", steps, 0.0, True).value["losses"]
    with about(("batches", as_text(steps)), of="The loss that you return, at each of two steps: "):
        assert_close(
            torch.tensor(got, dtype=torch.float64),
            torch.tensor(whole(weights, "sgd", steps)[0], dtype=torch.float64),
            rtol=1e-6,
            atol=1e-7,
            because=ROUNDING,
        )


@claimed
@points(2)
def test_one_graph_at_a_time(stepped, weights, rng):
    """Each piece goes through the model at most once and alone; one graph is alive at a time."""
    sizes = [3, 5, 2, 4]
    for training in (True, False):
        made = [pieces(rng, sizes, [0, 1, 0, 2])]
        got = stepped.ask(weights, "sgd", made, 0.0, training).value
        assert_equal(
            got["sizes"], sizes, "How many rows the model was given, at each of its calls."
        )
        modes = "Whether the model was in training mode, at each of its calls."
        assert_equal(got["modes"], [training] * 4, modes)
        if max(got["alive"]) > 1:
            raise Mismatch(
                "Graphs of earlier pieces are still alive.",
                (
                    ("allowed", "at most 1 at each call of the model"),
                    ("alive at the calls", repr(got["alive"])),
                ),
            )
        assert_equal(got["left"], [0], "How many graphs are alive when you have returned.")
