"""Bytes are counted per storage, once; views cost nothing; what was freed is no longer alive."""

import threading

import torch

from grader.inside.instruments.memory import Memory, watch_memory
from grader.inside.instruments.ops import watch_ops
from grader.inside.witness import Account

FLOAT = 4


def test_views_allocate_nothing():
    x = torch.randn(8, 9)
    with watch_memory() as memory:
        x.t()[1:, ::2].unsqueeze(0).expand(5, -1, -1).as_strided((2,), (0,))
    assert (memory.new_bytes, memory.peak_bytes) == (0, 0)


def test_a_storage_that_is_handed_on_is_no_new_one():
    x = torch.randn(8, 9)
    with watch_memory() as memory:
        torch.empty(0).set_(x.untyped_storage(), 0, (72,), (1,))
    assert memory.new_bytes == 0


def test_copies_count_once():
    x = torch.randn(8, 9)
    with watch_memory() as memory:
        y = x.t().contiguous()
        y.view(-1).add_(1)
    assert memory.new_bytes == memory.live_bytes == memory.largest_bytes == 72 * FLOAT


def test_the_peak_is_what_lived_at_once():
    x = torch.randn(100)
    with watch_memory() as memory:
        for _ in range(10):
            y = x + 1
            del y
    assert memory.new_bytes == 1000 * FLOAT
    assert memory.peak_bytes == 100 * FLOAT
    assert memory.live_bytes == 0


def test_the_peak_can_be_reset_to_what_is_alive():
    with watch_memory() as memory:
        x = torch.zeros(100)
        y = x + 1
        del y
        memory.reset_peak()
        assert memory.peak_bytes == memory.live_bytes == 100 * FLOAT
        x[:50] + 1
    assert (memory.peak_bytes, memory.new_bytes) == (150 * FLOAT, 250 * FLOAT)


def test_a_view_keeps_its_storage_alive():
    with watch_memory() as memory:
        part = torch.zeros(100)[:2]
        assert memory.live_bytes == 100 * FLOAT
        del part
        assert memory.live_bytes == 0


def test_an_old_storage_that_dies_is_not_given_back():
    x = torch.randn(100)
    with watch_memory() as memory:
        y = x + 1
        del x
        z = y * 2
        del y
    assert (memory.new_bytes, memory.peak_bytes) == (200 * FLOAT, 200 * FLOAT)
    assert memory.live_bytes == z.numel() * FLOAT


def test_what_grows_counts_by_what_it_gained():
    x = torch.zeros(4)
    with watch_memory() as memory:
        x.resize_(10)
        torch.add(torch.ones(6), 1, out=torch.empty(0))
    assert memory.new_bytes == (6 + 6 + 6) * FLOAT


def test_a_growing_storage_of_ours_is_given_back_whole():
    with watch_memory() as memory:
        x = torch.empty(4)
        x.resize_(10)
        del x
    assert (memory.new_bytes, memory.live_bytes) == (10 * FLOAT, 0)


def test_tensors_made_from_python_data():
    with watch_memory() as memory:
        torch.tensor([1.0, 2.0])
        torch.as_tensor([1, 2, 3])
    assert memory.new_bytes == 2 * FLOAT + 3 * 8


def test_what_backward_needs_stays_alive():
    w = torch.randn(50, requires_grad=True)
    with watch_memory() as memory:
        y = w.exp()
        out = y.sum()
        del y
        assert memory.live_bytes == 51 * FLOAT
        out.backward()
    assert w.grad is not None


def test_two_instruments_at_once():
    x = torch.randn(3, 3)
    with watch_memory() as memory, watch_ops() as ops:
        x @ x
    assert (memory.new_bytes, ops.names) == (9 * FLOAT, ("mm",))


def test_nothing_is_followed_afterwards():
    with watch_memory() as memory:
        x = torch.zeros(5)
    del x
    assert memory.live_bytes == 5 * FLOAT


def test_the_meta_device_can_be_left_out():
    for meta, seen in ((True, 72 * FLOAT), (False, 0)):
        with watch_memory(meta=meta) as memory:
            torch.empty(8, 9, device="meta").t().contiguous().view(9, 8)
        assert memory.new_bytes == seen * 2


def test_a_storage_that_is_emptied_and_filled_again():
    with watch_memory() as memory:
        x = torch.ones(100)
        x.untyped_storage().resize_(0)
        torch.ones(1)
        assert memory.live_bytes == 0
        x.untyped_storage().resize_(100 * FLOAT)
        x.data.fill_(2)
        assert memory.live_bytes == memory.peak_bytes == 100 * FLOAT


def test_what_is_noted_meanwhile_is_told_in_the_order_in_which_it_is_noted(monkeypatch):
    """By another thread, gloo's, say, or by a collection of garbage within the call that tells."""
    memory, told = Memory(), []

    def tell(_, *what):
        if what == (8, 8):
            memory._note((-1, 0))
            other = threading.Thread(target=memory._note, args=((-2, 0),))
            other.start()
            other.join()
        told.append(what)

    monkeypatch.setattr(Account, "tell", tell)
    memory._note((8, 8))
    assert told == memory._told == [(8, 8), (-1, 0), (-2, 0)]
    assert memory.live_bytes == 5
    memory._close()
    memory._note((-3, 0))
    assert told == memory._told == [(8, 8), (-1, 0), (-2, 0)]
