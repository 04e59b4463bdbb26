"""Checks of `cross_entropy`: values, first and second derivatives, the ends of the range, bytes."""

import pytest
import torch
import torch.nn.functional as F

from grader import Mismatch, about, assert_close, assert_holds, assert_tensor, claimed, gate, points

ROUNDING = "float64 sums in another order"
SINGLE = "a few roundings of float32 per row, of numbers as large as the logits"


@pytest.fixture
def logits(rng):
    """float64 (7, 5)."""
    return 3 * torch.randn(7, 5, generator=rng, dtype=torch.float64)


@pytest.fixture
def target(rng):
    return torch.randint(5, (7,), generator=rng)


@pytest.fixture
def cotangent(rng):
    return torch.rand((), generator=rng, dtype=torch.float64) + 0.5


@pytest.fixture
def direction(rng):
    return torch.randn(7, 5, generator=rng, dtype=torch.float64)


def right(logits, target, cotangent, direction):
    """Return the loss and its derivatives by torch's own, in float64."""
    z, c = logits.detach().requires_grad_(), cotangent.clone().requires_grad_()
    loss = F.cross_entropy(z, target)
    (first,) = torch.autograd.grad(loss, z, c, create_graph=True)
    second = torch.autograd.grad(first, (z, c), direction)
    return loss.detach(), first.detach(), [part.detach() for part in second]


LOSS = "The loss"
FIRST = "The gradient by the logits"
SECOND = "The derivative of the gradient by the {}"


def close(got, expected, what, *rows):
    """Compare; `what` is the quantity, `rows` say for which inputs."""
    with about(*rows, of=f"{what}: "):
        assert_close(got, expected, rtol=1e-9, atol=1e-12, because=ROUNDING)


def awkward(logits):
    """Return logits in several layouts, and a single row of one class, by the code that makes them."""
    return {
        "torch.randn(7, 5)": logits,
        "torch.randn(7, 5).t().contiguous().t()": logits.t().contiguous().t(),
        "torch.randn(7, 5, 2)[..., 1]": torch.stack([logits, -logits], -1)[..., 1],
        "torch.randn(1, 5).expand(7, 5)": logits[:1].expand(7, 5),
        "torch.randn(1, 1)": logits[3:4, 2:3],
    }


def close_second(mine, theirs, name):
    """Compare a derivative of the gradient, which may not be there at all."""
    if mine is None:
        raise Mismatch(f"The gradient by the logits has no derivative by the {name}.")
    close(mine, theirs, SECOND.format(name))


@gate
def test_dtype_and_shape(entropy_value, logits, target):
    """Returns a tensor without dimensions, in the dtype of `logits`."""
    for dtype in (torch.float64, torch.float32):
        value = entropy_value.ask(logits.to(dtype), target).value
        assert_tensor(value, dtype=dtype, shape=())


def test_value(entropy_value, logits, target):
    """The loss, for any layout and number of rows."""
    for code, z in awkward(logits).items():
        t = target[: len(z)].clamp(max=z.shape[1] - 1)
        close(entropy_value.ask(z, t).value, F.cross_entropy(z, t), LOSS, ("logits", code))


def test_large_logits(entropy_value, entropy_first, rng):
    """Loss and gradient of logits that `exp` cannot hold, in `float32`: large, small, far apart."""
    below = -100 - 100 * torch.rand(9, 4, generator=rng)
    below[:, 0] = (
        0  # nothing overflows here, and the other probabilities are less than float32 holds
    )
    t = torch.randint(1, 4, (9,), generator=rng)
    value = entropy_value.ask(below, t).value
    with about(
        ("logits", "a first column of 0, others of -100 to -200; other targets"), of="The loss: "
    ):
        assert_close(value, F.cross_entropy(below, t), rtol=1e-5, atol=2e-4, because=SINGLE)
    for scale, shift in ((100.0, 0.0), (1e4, 0.0), (1.0, 5000.0), (1.0, -5000.0), (1e-3, 300.0)):
        z = scale * torch.randn(9, 4, generator=rng) + shift
        t = torch.randint(4, (9,), generator=rng)
        exact = z.double().requires_grad_()
        loss = F.cross_entropy(exact, t)
        loss.backward()
        size = float(z.abs().max())
        case = ("logits", f"{scale:g} * torch.randn(9, 4) + {shift:g}, in float32")
        got = entropy_value.ask(z, t).value
        with about(case, of=f"{LOSS}: "):
            right_loss = loss.detach().float()
            assert_close(got, right_loss, rtol=1e-5, atol=size * 1e-6, because=SINGLE)
        got = entropy_first.ask(z, t).value
        with about(case, of=f"{FIRST}: "):
            atol = max(size, 1) * 1e-6
            assert_close(got, exact.grad.float(), rtol=1e-3, atol=atol, because=SINGLE)


def test_minus_infinity(entropy_grads, logits, target, cotangent, direction):
    """A class that is out of the question: minus infinity, with gradients of 0."""
    z = logits.clone()
    z[torch.arange(7), (target + 1) % 5] = -torch.inf
    z[2, (target[2] + torch.arange(1, 5)) % 5] = -torch.inf  # the target alone is left
    got = entropy_grads.ask(z, target, cotangent, direction).value
    finite = z.masked_fill(z.isinf(), -1e6)  # far enough for a probability of exactly 0
    loss, first, second = right(finite, target, cotangent, direction)
    case = ("logits", "in each row one or more of minus infinity, none of them the target")
    close(got["loss"], loss, LOSS, case)
    close(got["first"], first, FIRST, case)
    with about(case):
        close_second(got["second"][0], second[0], "logits")


def test_gradient(entropy_grads, logits, target, cotangent, direction):
    """The gradient, for any incoming gradient."""
    for scale in (1.0, -3.0):
        got = entropy_grads.ask(logits, target, scale * cotangent, direction).value
        incoming = ("incoming gradient", f"{float(scale * cotangent):.3g}")
        close(got["first"], right(logits, target, scale * cotangent, direction)[1], FIRST, incoming)


@points(3)
def test_second_derivative(entropy_grads, logits, target, cotangent, direction):
    """The gradient's own derivatives, with respect to the logits and to the incoming gradient."""
    for z in (logits, 0.1 * logits):
        got = entropy_grads.ask(z, target, cotangent, direction).value["second"]
        expected = right(z, target, cotangent, direction)[2]
        for name, mine, theirs in zip(("logits", "incoming gradient"), got, expected, strict=True):
            close_second(mine, theirs, name)


@claimed
@points(2)
def test_saved(entropy_saved, rng):
    """The graph keeps at most 16 bytes per row beside the inputs."""
    z, t = torch.randn(50, 200, generator=rng), torch.randint(200, (50,), generator=rng)
    got = entropy_saved.ask(z, t).value
    assert_holds(got["grad"] is not None, "No gradient arrived.")
    if got["bytes"] > 16 * len(z):
        raise Mismatch(
            "The graph keeps more than it may, for 50 rows of 200 logits.",
            (("allowed", "800 bytes"), ("kept", f"{got['bytes']} bytes")),
        )
