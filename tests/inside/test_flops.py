"""Products are counted by torch's formulas, by operator."""

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from grader.inside.instruments.flops import watch_flops


def test_products():
    a, b, c = torch.randn(10, 100), torch.randn(100, 5), torch.randn(3, 5, 50)
    with watch_flops() as flops:
        torch.matmul(a @ b, c)
    assert flops.by_op == {"mm": 2 * 10 * 100 * 5, "bmm": 2 * 3 * 10 * 5 * 50}
    assert flops.total == 10_000 + 15_000


def test_elementwise_work_has_no_formula():
    with watch_flops() as flops:
        torch.randn(100).exp().sum()
    assert (flops.total, flops.by_op) == (0, {})


def test_backward_counts():
    x, w = torch.randn(4, 3), torch.randn(3, 2, requires_grad=True)
    with watch_flops() as flops:
        (x @ w).sum().backward()
    assert flops.total == 2 * (2 * 4 * 3 * 2)


def faked(program):
    with FakeTensorMode():
        return program().device


X = torch.randn(2, 3, 8, 8)
PROGRAMS = {
    "no product": lambda: X.exp().sum(),
    "many products": lambda: (
        torch.einsum("bchw,dchw->bd", X, X) @ torch.addmm(X[0, 0, 0], X[0, 0], X[0, 1])[:2]
    ),
    "an operator with `out`": lambda: torch.mm(X[0, 0], X[0, 1], out=torch.empty(8, 8)),
    "a convolution and back": lambda: (
        F.conv2d(X, torch.randn(4, 3, 3, 3, requires_grad=True)).sum().backward()
    ),
    "attention": lambda: F.scaled_dot_product_attention(X, X, X),
    "fake tensors": lambda: faked(lambda: torch.ones(9, 3) @ torch.ones(3, 4).T.contiguous().T),
    "a product in inference mode": torch.inference_mode()(lambda: X @ X),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_torchs_own_counter_counts_the_same(program):
    with FlopCounterMode(display=False) as theirs:
        PROGRAMS[program]()
    with watch_flops() as ours:
        PROGRAMS[program]()
    counts = theirs.get_flop_counts().get("Global", {})
    assert ours.by_op == {str(packet).partition(".")[2]: count for packet, count in counts.items()}


def test_what_a_tensor_of_another_kind_runs_counts():
    class Hides(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return torch.ones(4, 3) @ torch.ones(3, 4)

    with watch_flops() as flops:
        torch.ones(4, 3).as_subclass(Hides).sum()
    assert flops.by_op == {"mm": 2 * 4 * 3 * 4}
