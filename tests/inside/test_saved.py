"""What is saved for backward is counted: each tensor, and each storage's bytes once."""

import weakref

import torch
from torch.utils.checkpoint import checkpoint

from grader.inside.instruments.saved import watch_saved


def test_a_product_saves_the_operand_that_needs_no_grad():
    x, w = torch.ones(1000), torch.ones(1000, requires_grad=True)
    with watch_saved() as saved:
        y = x * w
    assert (saved.count, saved.bytes) == (1, 4000)
    assert saved.bytes_without(x) == 0
    assert saved.bytes_without(w) == 4000
    y.sum().backward()
    assert w.grad.tolist() == x.tolist()


def test_a_storage_counts_once():
    x = torch.ones(1000, requires_grad=True)
    with watch_saved() as saved:
        x * x
    assert (saved.count, saved.bytes) == (2, 4000)


def test_a_view_counts_as_its_storage():
    row = torch.ones(1, 10)
    w = torch.ones(1000, 10, requires_grad=True)
    with watch_saved() as saved:
        w * row.expand(1000, 10)
        w[:2] * torch.ones(50, 10)[7:9]
    assert saved.bytes == 40 + 2000


def test_nothing_without_grad():
    x = torch.ones(10, requires_grad=True)
    with watch_saved() as saved, torch.no_grad():
        x * x
    assert (saved.count, saved.bytes) == (0, 0)


def test_only_what_is_recorded_inside():
    x = torch.ones(10, requires_grad=True)
    before = x.exp()
    with watch_saved() as saved:
        before.sum()
    x.exp()
    assert (saved.count, saved.bytes) == (0, 0)


def test_a_checkpoint_saves_its_input_alone():
    x = torch.ones(10, requires_grad=True)
    with watch_saved() as saved:
        checkpoint(lambda t: t.exp().sin(), x, use_reentrant=False)
    assert saved.bytes_without(x) == 0


def test_a_freed_storages_address_is_not_taken_for_another():
    x = torch.ones(10, requires_grad=True)
    with watch_saved() as saved:
        for _ in range(5):
            x * torch.ones(10)  # saved, and its graph gone at once
    assert saved.bytes == 5 * 40


def test_the_graph_goes_with_its_result():
    class Token:
        pass

    x = torch.ones(10, requires_grad=True)
    with watch_saved():
        y = x.exp()  # saves its own result
    token = y.grad_fn.metadata["token"] = Token()
    alive = weakref.ref(token)
    del y, token
    assert alive() is None


def test_what_is_watched_can_be_differentiated_twice():
    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    with watch_saved():
        assert torch.autograd.gradgradcheck(lambda x: (x.exp() * x.sigmoid()).prod(), x)
