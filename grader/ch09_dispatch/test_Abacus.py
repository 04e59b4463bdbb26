"""Checks of `Abacus`: programs and trainings on the device against the same on the CPU."""

import pytest
import torch

from grader import (
    about,
    assert_close,
    assert_equal,
    assert_raises,
    assert_same_bits,
    claimed,
    draw_int,
    gate,
    points,
    whole_numbers,
)
from grader.ch09_dispatch.probes.abacus import VIEWS, train
from grader.ch09_dispatch.probes.plugging import run_lines

FLOAT32 = "NumPy may sum in another order, and compute in float64 what is stored as float32"
FLOAT64 = "NumPy and PyTorch sum in different orders, in float64"

ARITHMETIC = [
    "torch.add(x, y, alpha=3)",
    "x[:, ::2] + y[0, 1::2]",
    "x * y.t()[1:2, :1]",
    "x.t() / y.t()",
    "x + 2",
    "x * 2.5",
    "x / 4",
    "x + torch.full((), 3.0, dtype=torch.float64)",
    "torch.tanh(x.t() / 8)",
    "torch.sqrt(x[:, 1:3])",
    "torch.lerp(x, y[0], 0.25)",
    "torch.addcmul(x, y, x[:1])",
    "torch.addcmul(x, y, x, value=0.5)",
    "torch.addcdiv(x.t(), x[:1].t(), y.t())",
    "torch.addcdiv(x, y, x, value=-2)",
    "n + n",
    "n * 2**40 + 1",
    "n / 4",
    "x + n",
    "torch.add(n, n, alpha=2)",
    "torch.sqrt(n.to(torch.int8))",
    "torch.tanh(n.to(torch.int8))",
    "n.to(torch.uint8) + 300",
    "n.to(torch.int8) * 200",
    "x.add_(y, alpha=2)",
    "x.mul_(x)",
    "x.t().div_(y.t()), x",
    "x[1].sqrt_(), x",
    "x[:, 1].fill_(7), x",
    "x[2:, 2:].zero_(), x",
    "x[:, 1:].tanh_(), x",
    "torch.lerp(x, y, 0.25, out=y)",
    "torch.addcmul(x, y, x[:1], out=y)",
    "torch.addcdiv(x, y + 1, y, out=y)",
    "x[:2].addcmul_(y[:2], y[1:], value=0.5), x",
    "x.addcdiv_(x, y)",
]
"""What the elementwise kernels serve."""

SUMS = [
    "x @ y.t()",
    "x.t() @ y",
    "torch.addmm(x[0], x, y.t() @ x)",
    "torch.addmm(x[:, :1], x, y.t(), beta=0.5, alpha=2)",
    "x[:, :3].addmm_(y, y.t(), alpha=0.5), x",
    "x.sum()",
    "x.t().sum(0)",
    "x.sum(1, keepdim=True)",
    "x.sum((0, 1))",
    "x.sum(-1)",
    "x.sum(dim=())",
    "n.sum()",
    "(n * 2**40).sum(0)",
    "x.sum(0, dtype=torch.float64)",
    "torch.tensor([2.0**24, 1.0]).to(device).sum(0, dtype=torch.float64)",
]
"""What `mm`, `addmm` and `sum` serve."""

LOSSES = [
    "F.mse_loss(x, y.t().contiguous().t(), reduction='none')",
    "F.mse_loss(x, y[0].expand(3, 4))",
    "F.mse_loss(x, y, reduction='sum')",
    "torch.autograd.grad(F.mse_loss(x.requires_grad_(), y, reduction='none'), x, y.t().contiguous().t())",
    "torch.autograd.grad(F.mse_loss(x.requires_grad_(), y) * 1.5, x)",
    "torch.autograd.grad(F.mse_loss(x.requires_grad_(), y, reduction='sum') * 1.5, x)",
    "torch.autograd.grad(torch.tanh(x.requires_grad_() / 8), x, y)",
]
"""What the loss, `tanh` and their gradients serve."""

FALLS_BACK = [
    "torch.cumsum(x, 1)",
    "torch.sort(x, 1, descending=True)",
    "torch.topk(x.t(), 2)",
    "torch.cat([x, x[:1], y])",
    "torch.stack([x, y])",
    "x[n[0] % 3]",
    "torch.where(x > 5, x, torch.neg(x))",
    "torch.triu_indices(3, 3, device=device)",
    "torch.abs(torch.neg(x))",
    "torch.masked_select(x, x > 5)",
    "torch.manual_seed(7) and x.normal_()",
    "n % 3",
    "torch.where(x > 5, x, 0.1)",
    "torch.equal(x, x)",
    "n.max().item()",
]
"""What other operators give: of lists, tuples, a device, numbers; one draws at random."""

WRITES = [
    "torch.cumsum(x, 0, out=y), y",
    "torch.sort(x, 1, out=(y.t().contiguous().t(), n))",
    "x[:, 1].neg_(), x",
    "x.t()[2].clamp_(2, 5), x",
    "x.index_fill_(0, n[0, :2] % 3, 9)",
    "x.index_add_(0, n[1, :1] % 3, y[:1])",
    "torch.cumsum(x, 1, out=torch.empty(0, device=device))",
    "torch._fused_sgd_([x, n.float()], [y, x.clone()], [x + y, y + 1], weight_decay=0.1, momentum=0.9,"
    " lr=0.5, dampening=0.0, nesterov=False, maximize=False, is_first_step=False), x",
]
"""What other operators write: one tensor or two, through views, of another size, in lists."""


@pytest.fixture
def inputs(rng):
    """x and y (3, 4), floats from 0.5 to 9, and n (3, 4), whole numbers."""
    x, y = (torch.rand(3, 4, generator=rng) * 8.5 + 0.5 for _ in "xy")
    return {"x": x, "y": y, "n": whole_numbers(rng, (3, 4), 1, 9, dtype=torch.int64)}


def as_on_the_cpu(abacus_lines, lines, inputs, *, falls=True):
    """Compare what lines give; unless it `falls`, nothing of them may go to the fallback."""
    expected = run_lines(lines, inputs, "cpu")
    for line, found, others in zip(
        lines, abacus_lines.ask(lines, inputs).value, expected, strict=True
    ):
        case = f"{line}, with x, y (3, 4) in float32 and n (3, 4) in int64. "
        assert_equal(len(found["values"]), len(others), case + "The number of results.")
        for one, other in zip(found["values"], others, strict=True):
            same(one, other, case)
        if not falls:
            assert_equal(found["fell back"], [], case + "Operators that went to the fallback.")


def same(one, other, case):
    if not isinstance(other, torch.Tensor):
        assert_equal(one, other, case)
        return
    assert_equal(str(one.dtype), str(other.dtype), case + "The dtype.")
    assert_equal(list(one.shape), list(other.shape), case + "The shape.")
    with about(of=case):
        if other.dtype is torch.float32:
            assert_close(one, other, rtol=1e-5, atol=1e-5, because=FLOAT32)
        elif other.dtype is torch.float64:
            assert_close(one, other, rtol=1e-12, atol=1e-12, because=FLOAT64)
        else:
            assert_same_bits(one, other)


@gate
def test_adds(abacus_lines, inputs):
    """`x + y` on the device is right."""
    as_on_the_cpu(abacus_lines, ["x + y"], inputs)


def test_arithmetic(abacus_lines, inputs):
    """Elementwise kernels: any strides and dtypes, numbers, broadcasting, in place."""
    as_on_the_cpu(abacus_lines, ARITHMETIC, inputs, falls=False)


def test_products_and_sums(abacus_lines, inputs):
    """`mm`, `addmm` and `sum`: with `alpha` and `beta`, over any dimensions, in any dtype."""
    as_on_the_cpu(abacus_lines, SUMS, inputs, falls=False)


def test_losses(abacus_lines, inputs):
    """`mse_loss` and `tanh` and their gradients, for each reduction."""
    as_on_the_cpu(abacus_lines, LOSSES, inputs, falls=False)


def trains(abacus_trains, rng, run, steps):
    seed = draw_int(rng, 1, 2**31)
    got = abacus_trains.ask(run, seed, steps).value
    expected = train(run, seed, steps, "cpu")
    with about(of=f"Losses of {steps} steps of the {run}. "):
        assert_close(got["losses"], expected["losses"], rtol=1e-9, atol=1e-10, because=FLOAT64)
    for at, (one, other) in enumerate(zip(got["weights"], expected["weights"], strict=True)):
        with about(of=f"Parameter {at} of the {run} after {steps} steps. "):
            assert_close(one, other, rtol=1e-8, atol=1e-9, because=FLOAT64)
    return got


@points(4)
@claimed
def test_trains(abacus_trains, rng):
    """A network trains as on the CPU, with Adam, and nothing of it falls back."""
    got = trains(abacus_trains, rng, "regression", 6)
    assert_equal(got["fell back"], [], "Operators of the training that went to the fallback.")


@claimed
def test_numpy(abacus_calls, inputs):
    """Kernels call no operator of PyTorch, but for new tensors."""
    lines = [*ARITHMETIC, *SUMS, *LOSSES]
    called = [f"{op}, called by {name}" for name, op in abacus_calls.ask(lines, inputs).value]
    assert_equal(called, [], "Operators of PyTorch that kernels call.")


def test_fallback(abacus_lines, inputs):
    """Any other operator falls back: tensors in lists, devices, several results, numbers."""
    as_on_the_cpu(abacus_lines, FALLS_BACK, inputs)


def test_writes_back(abacus_lines, abacus_returns, inputs):
    """The fallback writes into what the operator writes into, and returns that very tensor."""
    as_on_the_cpu(abacus_lines, WRITES, inputs)
    expected = {
        "sort(x, 0, values=values, indices=indices)": [True, True],
        "neg_(x)": True,
        "devices of split_copy(x, 2)": ["abacus", "abacus"],
        "equal(x, x)": True,
    }
    got = abacus_returns.ask(inputs["x"]).value
    for call, value in expected.items():
        words = "" if "device" in call else "Is each result the written tensor itself, of "
        words = "The result of " if call.startswith("equal") else words
        assert_equal(got[call], value, f"{words}{call}.")


def test_no_views(abacus_view, inputs):
    """The fallback makes no view: it raises NotImplementedError."""
    for view in VIEWS:
        got = abacus_view.ask(view, inputs["x"])
        assert_raises(got, "NotImplementedError", "A view of a copy came back.", ("on", view))


@claimed
def test_any_network(abacus_trains, rng):
    """A network that it has no kernels for trains as on the CPU, and leaves no memory behind."""
    got = trains(abacus_trains, rng, "classifier", 4)
    assert_equal(got["alive"][1:], got["alive"][1:2] * 3, "Bytes in use after steps 2, 3 and 4.")
    assert_equal(got["left"], 0, "Bytes in use when network, optimizer and data are gone.")
