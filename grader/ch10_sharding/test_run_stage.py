"""Checks of `run_stage`, `send` and `receive`: against one process, and what each rank sent and held."""

from itertools import accumulate

import pytest
import torch

from grader import (
    Mismatch,
    about,
    assert_close,
    assert_equal,
    assert_holds,
    claimed,
    points,
)

ROWS, FEATURES, HIDDEN = 2, 3, 512
"""A micro-batch is (rows, features). Hidden features are many: they outweigh all else that is held."""

ONE_F_ONE_B = ["F0 F1 F2 B0 F3 B1 F4 B2 B3 B4", "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4"]
ONE_F_ONE_B.append("F0 B0 F1 B1 F2 B2 F3 B3 F4 B4")
"""Of three stages and five micro-batches. A plan in which all forwards come first holds five everywhere."""

SUMS = "the same sums in float32, in another order"


def planned(*texts):
    """Return the plan that each text tells: "F0 B0"."""
    return [[(action[0], int(action[1:])) for action in text.split()] for text in texts]


@pytest.fixture
def plans():
    return planned(*ONE_F_ONE_B)


def drawn(rng, *shape):
    return torch.randn(shape, generator=rng)


def weights_of(rng, stages):
    """Return by stage `up` and `down`; what comes out is about as large as what went in."""
    return [
        [drawn(rng, FEATURES, HIDDEN), drawn(rng, HIDDEN, FEATURES) / HIDDEN**0.5]
        for _ in range(stages)
    ]


@pytest.fixture
def weights(rng):
    return weights_of(rng, 3)


@pytest.fixture
def micro_batches(rng):
    return list(drawn(rng, 5, ROWS, FEATURES))


@pytest.fixture
def targets(rng):
    return list(drawn(rng, 5, ROWS, FEATURES))


@pytest.fixture
def by_column():
    return False


def alone(weights, micro_batches, targets):
    """Return the mean loss in one process, and by stage the gradients of its weights."""
    leaves = [[weight.clone().requires_grad_() for weight in stage] for stage in weights]
    losses = []
    for x, target in zip(micro_batches, targets, strict=True):
        for up, down in leaves:
            x = (x @ up).tanh() @ down
        losses.append((x - target).square().sum())
    mean = torch.stack(losses).mean()
    mean.backward()
    return mean.detach(), [
        dict(zip(("up", "down"), (w.grad for w in s), strict=True)) for s in leaves
    ]


def on(plans):
    """Return the row that says what was run, a micro-batch being `ROWS` rows."""
    told = ["".join(f" {kind}{number}" for kind, number in plan)[1:] for plan in plans]
    return ("on", f"{len(plans)} ranks, plans: {'; '.join(told)}")


def assert_gradients(found, grads, plans):
    for rank, (mine, right) in enumerate(zip(found, grads, strict=True)):
        for name in ("down", "up"):
            with about(on(plans), of=f"The gradient of stage {rank}'s `{name}`. "):
                assert_close(mine["grads"][name], right[name], rtol=1e-3, atol=1e-4, because=SUMS)


def assert_losses(found, mean, plans):
    last = len(found) - 1
    for rank, mine in enumerate(found):
        with about(on(plans), of=f"What rank {rank} returns. "):
            if rank < last:
                assert_equal(mine["result"], None, "It is not the last stage, and has no loss.")
            elif not isinstance(mine["result"], float):
                raise Mismatch(
                    "It is no `float`.", (("got", f"a {type(mine['result']).__name__}"),)
                )
            else:
                got = torch.tensor(mine["result"], dtype=mean.dtype)
                assert_close(got, mean, rtol=1e-3, atol=1e-4, because=SUMS)


@points(3)
def test_gradients(stages_run, weights, micro_batches, targets, plans):
    """Three stages by 1F1B: gradients of the mean loss, on every rank those of one process."""
    _, grads = alone(weights, micro_batches, targets)
    assert_gradients(stages_run.value, grads, plans)


@pytest.fixture
def x(rng):
    return drawn(rng, 4, 2)


@pytest.fixture
def weight(rng):
    return drawn(rng, 4, 2)


@pytest.fixture
def factor(rng):
    return drawn(rng, 4, 2)


@points(4)
def test_message(message_sent, x, weight, factor):
    """`send` and `receive` alone: values there, the gradient back, and an empty tensor in between."""
    sender, receiver = message_sent.value
    because = "one product of each element"
    with about(of="What `receive` returns. "):
        assert_close(receiver["got"], x * weight, rtol=1e-5, atol=1e-6, because=because)
    what = "What `receive` returns does not require grad: backward ends there."
    assert_holds(receiver["requires grad"], what)
    assert_equal(sender["phony"], [0], "The shape of what `send` returns.")
    what = "Backward on both ranks, and what was sent gets no gradient."
    assert_holds(sender["grad"] is not None, what)
    with about(of="The gradient of a factor of what is sent, after backward on both ranks. "):
        assert_close(sender["grad"], x * factor, rtol=1e-5, atol=1e-6, because=because)


def test_loss(stages_run, weights, micro_batches, targets, plans):
    """The last rank returns the mean of all losses, a `float`, the others None."""
    mean, _ = alone(weights, micro_batches, targets)
    assert_losses(stages_run.value, mean, plans)


def test_other_plan(stages_run, rng):
    """Two ranks, all forwards first, then backwards from the last to the first; other sizes and layouts."""
    plans = planned(*["F0 F1 F2 B2 B1 B0"] * 2)
    weights = weights_of(rng, 2)
    micro_batches, targets = (
        [drawn(rng, rows, FEATURES) for rows in (ROWS, ROWS + 1, 1)] for _ in range(2)
    )
    found = stages_run.ask(weights, micro_batches, targets, plans, True).value
    mean, grads = alone(weights, micro_batches, targets)
    assert_gradients(found, grads, plans)
    assert_losses(found, mean, plans)
    for rank, mine in enumerate(found):
        with about(on(plans)):
            assert_equal(shown(mine["done"]), shown(plans[rank]), f"What rank {rank} did.")


def shown(plan):
    return " ".join(f"{kind}{number}" for kind, number in plan)


@claimed
def test_held(stages_run, plans):
    """1F1B in its order: the stages hold what autograd saved of 3, 2 and 1 micro-batches at most."""
    for rank, (mine, plan) in enumerate(zip(stages_run.value, plans, strict=True)):
        with about(on(plans)):
            assert_equal(shown(mine["done"]), shown(plan), f"What rank {rank} did.")
            most = max(accumulate(1 if kind == "F" else -1 for kind, _ in plan))
            what = f"Rank {rank} holds the hidden features of too many micro-batches."
            rows = (("expected", f"{most} at most"), ("got", str(mine["held"])))
            assert_holds(mine["held"] <= most, what, *rows)


@claimed
def test_messages(stages_run, weights, micro_batches, targets, plans):
    """One message of its bytes for each output and each gradient: the ranks send 5, 10 and 5."""
    _, grads = alone(weights, micro_batches, targets)
    assert_gradients(stages_run.value, grads, plans)
    size = micro_batches[0].nbytes
    for rank, mine in enumerate(stages_run.value):
        most = len(micro_batches) * (2 if 0 < rank < len(plans) - 1 else 1)
        with about(on(plans)):
            others = sorted({name for name, _ in mine["said"]} - {"send", "recv"})
            assert_equal(others, [], f"What rank {rank} calls besides `send` and `recv`.")
            for call in ("send", "recv"):
                sizes = [bytes_of for name, bytes_of in mine["said"] if name == call]
                rows = (
                    ("expected", f"{most} messages at most, of {size} bytes"),
                    ("got", f"{len(sizes)}, of {sorted(set(sizes))} bytes"),
                )
                right = len(sizes) <= most and sum(sizes) <= most * size
                assert_holds(right, f"What rank {rank} gives `{call}`.", *rows)
