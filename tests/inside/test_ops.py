"""Operators are seen by name, in order, below composite functions and through backward."""

import pytest
import torch

from grader.inside.instruments.ops import watch_ops


def test_composites_appear_as_their_parts():
    x = torch.randn(3, 4)
    with watch_ops() as ops:
        torch.matmul(x.t(), x)
        torch.nn.functional.linear(x, x)
    assert ops.names == ("t", "mm", "t", "mm")
    assert ops.count("mm", "bmm") == 2


def test_a_copy_is_told_from_a_view():
    x = torch.randn(3, 4)
    with watch_ops() as ops:
        x.t().reshape(12)
        x.reshape(12)
    assert ops.names == ("t", "clone", "_unsafe_view", "view")


def test_backward_counts_and_what_comes_after_does_not():
    w = torch.randn(4, 4, requires_grad=True)
    with watch_ops() as ops:
        (w @ w).sum().backward()
    torch.mm(w, w)
    assert ops.count("mm") == 3


def test_what_raises_was_seen_and_the_mode_is_left():
    before, x = torch._C._len_torch_dispatch_stack(), torch.ones(2, 3)
    with pytest.raises(RuntimeError), watch_ops() as ops:
        torch.mm(x, x)
    assert ops.names == ("mm",)
    assert torch._C._len_torch_dispatch_stack() == before
