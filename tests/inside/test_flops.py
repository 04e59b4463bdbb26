"""Products are counted by torch's formulas, by operator."""

import torch

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
